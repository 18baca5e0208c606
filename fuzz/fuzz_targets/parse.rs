//! A model's text: nothing panics, it is the same however it is cut, and arguments are JSON.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use podbay::llm::ToolSpec;
use podbay::llm::text::Hint;
use podbay::llm::text::Parsed;
use podbay::llm::text::Parser;
use podbay::llm::text::Tools;
use podbay::llm::text::parse;
use serde::de::IgnoredAny;
use serde_json::json;

static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
    let parameters = json!({"properties": {"command": {"type": "string"}, "limit": {"type": "integer"}, "path": {"type": "string"}}});
    let spec = |name: &str| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: parameters.clone(),
    };
    Tools::new(&[spec("bash"), spec("read_file")])
});

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    let names = Hint::names();
    let hint = names
        .get(usize::from(first >> 2))
        .and_then(|name| Hint::find(name));
    let whole = parse(&text, &TOOLS, hint);
    for call in &whole.calls {
        assert!(
            call.arguments.starts_with('{')
                && serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok()
        );
    }
    let step = usize::from(first & 3) + 1;
    let mut pieces = Parsed::default();
    let mut add = |piece| pieces.add(piece);
    let mut parser = Parser::new(&TOOLS, hint);
    let mut rest = &*text;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.ceil_char_boundary(step.min(rest.len())));
        parser.feed(piece, &mut add);
        rest = more;
    }
    let incomplete = parser.finish(&mut add);
    assert_eq!(pieces.ended(incomplete), whole);
});
