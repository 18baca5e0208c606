//! Sample output of each format's models, and the expected result.

use serde_json::json;

use super::*;
use crate::message::ToolSpec;
use podbay_soak as soak;

/// One format, with the same two calls written in it.
pub(super) struct Format {
    pub(super) name: &'static str,
    /// `bash` with the command `ls -l`.
    pub(super) one: &'static str,
    /// The same, and `read_file` with the path `a b.txt` and the limit 5.
    pub(super) two: &'static str,
    /// `bash` with a command that is hard to quote: `grep "it's" *.rs`, written as such models
    /// write.
    odd: &'static str,
    /// A truncated call of `bash`.
    pub(super) cut: &'static str,
}

pub(super) fn tools() -> Tools {
    let spec = |name: &str, parameters| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters,
    };
    let string = json!({"type": "string"});
    Tools::new(&[
        spec(
            "bash",
            json!({"type": "object", "properties": {"command": string}, "required": ["command"]}),
        ),
        spec(
            "read_file",
            json!({"type": "object", "properties": {"path": string, "limit": {"type": "integer"}}, "required": ["path"]}),
        ),
    ])
}

pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "hermes, qwen",
        one: "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n</tool_call>",
        two: "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}\n</tool_call>",
        odd: "<tool_call>{'name': 'bash', 'arguments': {'command': 'grep \"it\\'s\" *.rs',},}</tool_call>",
        cut: "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls",
    },
    Format {
        name: "several objects in one tag",
        one: "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}",
        two: "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}</tool_call>",
        odd: "<tool_call>{\\\"name\\\": \\\"bash\\\", \\\"arguments\\\": {\\\"command\\\": \\\"grep \\\\\\\"it's\\\\\\\" *.rs\\\"}}</tool_call>",
        cut: "<tool_call>{\"name\":\"bash\"",
    },
    Format {
        name: "openmono, with bars",
        one: "<|tool_call|>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}<|/tool_call|>",
        two: "<|tool_call|>{\"tool_call\": {\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}}<|/tool_call|><|tool_call|>{\"function\": {\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}}<|/tool_call|>",
        odd: "<|tool_call|>{\"name\": \"bash\", \"arguments\": \"{\\\"command\\\": \\\"grep \\\\\\\"it's\\\\\\\" *.rs\\\"}\"}<|/tool_call|>",
        cut: "<|tool_call|>{\"function\": {\"name\": \"bash\", \"argum",
    },
    Format {
        name: "openmono, in brackets",
        one: "[TOOL_CALL]{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}[/TOOL_CALL]",
        two: "[TOOL_CALL]{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}[/TOOL_CALL]\n[TOOL_CALL]{\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}[/TOOL_CALL]",
        odd: "[TOOL_CALL]{\"name\": \"bash\", \"arguments\": {\"command\": \"grep \"it's\" *.rs\"}}[/TOOL_CALL]",
        cut: "[TOOL_CALL]{\"name\": \"bash\", \"arguments\": {",
    },
    Format {
        name: "qwen 2.5, in the tag of its tools",
        one: "<tools>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n</tools>",
        two: "<tools>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}\n</tools>",
        odd: "<tools>{\"name\": \"bash\", \"arguments\": {\"command\": \"grep \"it's\" *.rs\"}}</tools>",
        cut: "<tools>\n{\"name\": \"bash\", \"arguments\": {",
    },
    Format {
        name: "gemma 3's code in a tag",
        one: "<tool_code>\nbash(command=\"ls -l\")\n</tool_code>",
        two: "<tool_code>\nbash(command=\"ls -l\")\nread_file(path=\"a b.txt\", limit=5)\n</tool_code>",
        odd: "<tool_code>\nbash(command='grep \"it\\'s\" *.rs')\n</tool_code>",
        cut: "<tool_code>\nbash(command=\"ls",
    },
    Format {
        name: "lm studio",
        one: "[TOOL_REQUEST]{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}[END_TOOL_REQUEST]",
        two: "[TOOL_REQUEST]{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}[END_TOOL_REQUEST]\n[TOOL_REQUEST]\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}\n[END_TOOL_REQUEST]",
        odd: "[TOOL_REQUEST]{\"name\": \"bash\", \"arguments\": {\"command\": \"grep \"it's\" *.rs\"}}[END_TOOL_REQUEST]",
        cut: "[TOOL_REQUEST]{\"name\": \"bash\", \"arguments\": {",
    },
    Format {
        name: "reason and act",
        one: "Action: bash\nAction Input: {\"command\": \"ls -l\"}",
        two: "Action: bash\nAction Input: {\"command\": \"ls -l\"}\nAction: read_file\nAction Input:\n```json\n{\"path\": \"a b.txt\", \"limit\": 5}\n```",
        odd: "Action: bash\nAction Input: {'command': 'grep \"it\\'s\" *.rs'}",
        cut: "Action: bash\nAction Input: {\"command\": \"ls",
    },
    Format {
        name: "action, fields beside the name",
        one: "{\"action\": \"bash\", \"action_input\": {\"command\": \"ls -l\"}}",
        two: "{\"tool\": \"bash\", \"command\": \"ls -l\"}\n{\"tool\": \"read_file\", \"path\": \"a b.txt\", \"limit\": 5}",
        odd: "{'action': 'bash', 'action_input': {'command': 'grep \"it\\'s\" *.rs'}}",
        cut: "{\"action\": \"bash\", \"action_input\": {\"command\": \"ls",
    },
    Format {
        name: "openmono, granite 20b",
        one: "<function_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}</function_call>",
        two: "<function_call> {\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}} <function_call> {\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}",
        odd: "<function_call>{name: 'bash', arguments: {command: 'grep \"it's\" *.rs'}}</function_call>",
        cut: "<function_call>{\"name\": \"bash\",",
    },
    Format {
        name: "orangutan",
        one: "<tool>{\"tool\":\"bash\",\"params\":{\"command\":\"ls -l\"}}</tool>",
        two: "<tool>{\"tool\":\"bash\",\"params\":{\"command\":\"ls -l\"}}</tool>\n<tool>{\"tool\":\"read_file\",\"params\":{\"path\":\"a b.txt\",\"limit\":5}}</tool>",
        odd: "<tool>{\"tool\":\"bash\",\"command\":\"grep \\\"it's\\\" *.rs\"}</tool>",
        cut: "<tool>{\"tool\":\"bash\",\"params\":{\"command\":\"l",
    },
    Format {
        name: "qwen3-coder, nemotron 3",
        one: "<tool_call>\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>",
        two: "<tool_call>\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>\n<function=read_file>\n<parameter=path>\na b.txt\n<parameter=limit>\n5\n</parameter>\n</function>",
        odd: "<function=bash><parameter=command>grep \"it's\" *.rs</parameter></function></tool_call>",
        cut: "<tool_call>\n<function=bash>\n<parameter=command>\nls",
    },
    Format {
        name: "seed-oss",
        one: "<seed:tool_call>\n<function=bash>\n<parameter=command>ls -l</parameter>\n</function>\n</seed:tool_call>",
        two: "<seed:tool_call>\n<function=bash>\n<parameter=command>ls -l</parameter>\n</function>\n<function=read_file>\n<parameter=path>a b.txt</parameter>\n<parameter=limit>5</parameter>\n</function>\n</seed:tool_call>",
        odd: "<seed:tool_call><function=bash>\n<parameter=command>\ngrep \"it's\" *.rs\n</function></seed:tool_call>",
        cut: "<seed:tool_call><function=bash>",
    },
    Format {
        name: "llama 3, bare",
        one: "{\"name\": \"bash\", \"parameters\": {\"command\": \"ls -l\"}}",
        two: "{\"name\": \"bash\", \"parameters\": {\"command\": \"ls -l\"}}; {\"name\": \"read_file\", \"parameters\": {\"path\": \"a b.txt\", \"limit\": 5}}<|eot_id|>",
        odd: "{\"type\": \"function\", \"name\": \"bash\", \"parameters\": {\"command\": \"grep \\\"it's\\\" *.rs\"}<|eom_id|>",
        cut: "{\"name\": \"bash\", \"parameters\": {\"command\": \"ls",
    },
    Format {
        name: "llama 3, python_tag",
        one: "<|python_tag|>{\"name\": \"bash\", \"parameters\": {\"command\": \"ls -l\"}}<|eom_id|>",
        two: "<|python_tag|>bash.call(command=\"ls -l\"); read_file.call(path=\"a b.txt\", limit=5)<|eom_id|>",
        odd: "<|python_tag|>bash(command='grep \"it\\'s\" *.rs')",
        cut: "<|python_tag|>bash.call(command=\"l",
    },
    Format {
        name: "llama 3, functionary 3.1",
        one: "<function=bash>{\"command\": \"ls -l\"}</function>",
        two: "<function=bash>{\"command\": \"ls -l\"}</function>\n<function=read_file>{\"path\": \"a b.txt\", \"limit\": 5}</function><|eom_id|>",
        odd: "<function=\"bash\">{\"command\": \"grep \\\"it's\\\" *.rs\",}</function>",
        cut: "<function=bash>{\"command\": ",
    },
    Format {
        name: "llama 4, python_start",
        one: "<|python_start|>[bash(command=\"ls -l\")]<|python_end|><|eot|>",
        two: "<|python_start|>[bash(command=\"ls -l\"), read_file(path=\"a b.txt\", limit=5)]<|python_end|><|eom|>",
        odd: "<|python_start|>{\"name\": \"bash\", \"parameters\": {\"command\": \"grep \\\"it's\\\" *.rs\"}}<|python_end|>",
        cut: "<|python_start|>[bash(command=\"ls",
    },
    Format {
        name: "pythonic: llama 4, gemma 3",
        one: "[bash(command=\"ls -l\")]",
        two: "[bash(command='ls -l'), read_file(path=\"a b.txt\", limit=5)]",
        odd: "[bash(command='grep \"it\\'s\" *.rs')]",
        cut: "[bash(command=\"ls",
    },
    Format {
        name: "lfm2",
        one: "<|tool_call_start|>[bash(command=\"ls -l\")]<|tool_call_end|>",
        two: "<|tool_call_start|>[bash(command=\"ls -l\"), read_file(\"a b.txt\", 5)]<|tool_call_end|>",
        odd: "<|tool_call_start|>[{'name': 'bash', 'arguments': {'command': 'grep \"it\\'s\" *.rs'}}]<|tool_call_end|>",
        cut: "<|tool_call_start|>[bash(comm",
    },
    Format {
        name: "olmo",
        one: "<function_calls>bash(command=\"ls -l\")</function_calls>",
        two: "<function_calls>\nbash(command=\"ls -l\")\nread_file(path=\"a b.txt\", limit=5)\n</function_calls>",
        odd: "<function_calls>bash(command=\"\"\"grep \"it's\" *.rs\"\"\")</function_calls>",
        cut: "<function_calls>\nbash(command=",
    },
    Format {
        name: "mistral, list",
        one: "[TOOL_CALLS][{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}]",
        two: "[TOOL_CALLS] [{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}, {\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}, \"id\": \"abcdefghi\"}]</s>",
        odd: "[TOOL_CALLS][{\"name\": \"bash\", \"arguments\": \"{\\\"command\\\": \\\"grep \\\\\\\"it's\\\\\\\" *.rs\\\"}\"}]",
        cut: "[TOOL_CALLS][{\"name\": \"bash\", \"arguments\": {\"c",
    },
    Format {
        name: "mistral, names",
        one: "[TOOL_CALLS]bash[ARGS]{\"command\": \"ls -l\"}",
        two: "[TOOL_CALLS]bash[CALL_ID]abcdefghi[ARGS]{\"command\": \"ls -l\"}[TOOL_CALLS]read_file{\"path\": \"a b.txt\", \"limit\": 5}</s>",
        odd: "[TOOL_CALLS]bash[ARGS]{'command': 'grep \"it\\'s\" *.rs'}",
        cut: "[TOOL_CALLS]bash[ARGS]{\"command\": \"ls -l\"",
    },
    Format {
        name: "deepseek v3, r1",
        one: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{\"command\": \"ls -l\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        two: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{\"command\": \"ls -l\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\": \"a b.txt\", \"limit\": 5}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        odd: "<｜tool_calls_begin｜><｜tool call begin｜>function<｜tool\\_sep｜>bash\n```json\n{\"command\": \"grep \\\"it's\\\" *.rs\",}\n```<｜tool_call_end｜>",
        cut: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{\"comm",
    },
    Format {
        name: "deepseek, with the signs of a keyboard",
        one: "<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>bash\n```json\n{\"command\": \"ls -l\"}\n```<|tool_call_end|><|tool_calls_end|>",
        two: "<|tool_calls_begin|><|tool_call_begin|>bash<|tool_sep|>{\"command\": \"ls -l\"}<|tool_call_end|>\n<|tool_call_begin|>read_file<|tool_sep|>{\"path\": \"a b.txt\", \"limit\": 5}<|tool_call_end|><|tool_calls_end|><|end_of_sentence|>",
        odd: "<|tool▁calls▁begin|><｜tool_call_begin|>function<|tool▁sep｜>bash\n```json\n{\"command\": \"grep \\\"it's\\\" *.rs\",}\n```<|tool_call▁end|>",
        cut: "<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>bash\n```json\n{\"comm",
    },
    Format {
        name: "deepseek v3.1",
        one: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{\"command\": \"ls -l\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        two: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{\"command\": \"ls -l\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{\"path\": \"a b.txt\", \"limit\": 5}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        odd: "<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{'command': 'grep \"it\\'s\" *.rs'}",
        cut: "<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{",
    },
    Format {
        name: "deepseek v3.2",
        one: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"bash\">\n<｜DSML｜parameter name=\"command\" string=\"true\">ls -l</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        two: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"bash\">\n<｜DSML｜parameter name=\"command\" string=\"true\">ls -l</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a b.txt</｜DSML｜parameter>\n<｜DSML｜parameter name=\"limit\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        odd: "<｜DSML｜invoke name=\"bash\"><｜DSML｜parameter name=\"command\" string=\"true\">grep \"it's\" *.rs</｜DSML｜parameter></｜DSML｜invoke>",
        cut: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"bash\">\n<｜DSML｜param",
    },
    Format {
        name: "deepseek v4",
        one: "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"bash\">\n<｜DSML｜parameter name=\"command\" string=\"true\">ls -l</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        two: "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"bash\">\n<｜DSML｜parameter name=\"command\" string=\"true\">ls -l</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a b.txt</｜DSML｜parameter>\n<｜DSML｜parameter name=\"limit\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        odd: "<|DSML|invoke name=\"bash\"><|DSML|parameter name=\"command\" string=\"true\">grep \"it's\" *.rs</|DSML|parameter></|DSML|invoke>",
        cut: "<|DSML|tool_calls>\n<|DSML|invoke name=\"bash\">\n<|DSML|param",
    },
    Format {
        name: "glm 4.5 and later",
        one: "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls -l</arg_value>\n</tool_call>",
        two: "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls -l</arg_value>\n</tool_call>\n<tool_call>read_file<arg_key>path</arg_key><arg_value>a b.txt</arg_value><arg_key>limit</arg_key><arg_value>5</arg_value></tool_call>",
        odd: "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>\ngrep \"it's\" *.rs\n</arg_value>\n</tool_c",
        cut: "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls",
    },
    Format {
        name: "glm 4.5 and later, without the beginning of its calls",
        one: "bash\n<arg_key>command</arg_key>\n<arg_value>ls -l</arg_value>\n</tool_call>",
        two: "bash\n<arg_key>command</arg_key>\n<arg_value>ls -l</arg_value>\n</tool_call>\nread_file<arg_key>path</arg_key><arg_value>a b.txt</arg_value><arg_key>limit</arg_key><arg_value>5</arg_value></tool_call>",
        odd: "bash\n<arg_key>command</arg_key>\n<arg_value>\ngrep \"it's\" *.rs\n</arg_value>\n</tool_call>",
        cut: "bash\n<arg_key>command</arg_key>\n<arg_value>ls",
    },
    Format {
        name: "glm 4, functionary 3.2 without its mark",
        one: "bash\n{\"command\": \"ls -l\"}",
        two: "bash\n{\"command\": \"ls -l\"}\nread_file\n{\"path\": \"a b.txt\", \"limit\": 5}<|observation|>",
        odd: "bash \n{'command': 'grep \"it\\'s\" *.rs'}",
        cut: "bash\n{\"command\": \"ls",
    },
    Format {
        name: "kimi k2",
        one: "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{\"command\": \"ls -l\"}<|tool_call_end|><|tool_calls_section_end|>",
        two: "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{\"command\": \"ls -l\"}<|tool_call_end|><|tool_call_begin|>functions.read_file:1<|tool_call_argument_begin|>{\"path\": \"a b.txt\", \"limit\": 5}<|tool_call_end|><|tool_calls_section_end|>",
        odd: "<|tool_call_begin|>bash:12<|tool_call_argument_begin|>{\"command\": \"grep \\\"it's\\\" *.rs\",}<|tool_call_end|>",
        cut: "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{\"",
    },
    Format {
        name: "kimi k3",
        one: "<|open|>tools<|sep|><|open|>call tool=\"bash\" index=\"1\"<|sep|><|open|>argument key=\"command\" type=\"string\"<|sep|>ls -l<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        two: "<|open|>tools<|sep|><|open|>call tool=\"bash\" index=\"1\"<|sep|><|open|>argument key=\"command\" type=\"string\"<|sep|>ls -l<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool=\"read_file\" index=\"2\"<|sep|><|open|>argument key=\"path\" type=\"string\"<|sep|>a b.txt<|close|>argument<|sep|><|open|>argument key=\"limit\" type=\"integer\"<|sep|>5<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
        odd: "<|open|>call tool=\"bash\" index=\"1\"<|sep|><|open|>argument key=\"command\" type=\"string\"<|sep|>grep \"it's\" *.rs<|close|>argument<|sep|><|close|>call<|sep|>",
        cut: "<|open|>tools<|sep|><|open|>call tool=\"bash\" index=\"1\"<|sep|><|open|>argument key=\"command\" type=\"string\"<|sep|>ls",
    },
    Format {
        name: "gpt-oss",
        one: "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{\"command\": \"ls -l\"}<|call|>",
        two: "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{\"command\": \"ls -l\"}<|call|><|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{\"path\": \"a b.txt\", \"limit\": 5}<|call|>",
        odd: "<|start|>assistant<|channel|>commentary to=functions.bash<|message|>{'command': 'grep \"it\\'s\" *.rs'}",
        cut: "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{\"command\": \"",
    },
    Format {
        name: "granite 3",
        one: "<|tool_call|>[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}]",
        two: "<tool_call>[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}, {\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}]<|end_of_text|>",
        odd: "<|tool_call|>[{'name': 'bash', 'arguments': {'command': 'grep \"it\\'s\" *.rs'}}]",
        cut: "<|tool_call|>[{\"name\": \"bash\", \"arguments\": {\"command\"",
    },
    Format {
        name: "command-r",
        one: "Action: ```json\n[\n    {\n        \"tool_name\": \"bash\",\n        \"parameters\": {\"command\": \"ls -l\"}\n    }\n]```",
        two: "Action: ```json\n[{\"tool_name\": \"bash\", \"parameters\": {\"command\": \"ls -l\"}}, {\"tool_name\": \"read_file\", \"parameters\": {\"path\": \"a b.txt\", \"limit\": 5}}]\n```",
        odd: "Action: [{'tool_name': 'bash', 'parameters': {'command': 'grep \"it\\'s\" *.rs'}}]",
        cut: "Action: ```json\n[{\"tool_name\": \"bash\", \"para",
    },
    Format {
        name: "command-r7b, command-a",
        one: "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"bash\", \"parameters\": {\"command\": \"ls -l\"}}]<|END_ACTION|>",
        two: "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"bash\", \"parameters\": {\"command\": \"ls -l\"}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"read_file\", \"parameters\": {\"path\": \"a b.txt\", \"limit\": 5}}\n]<|END_ACTION|>",
        odd: "<|START_ACTION|>{\"tool_name\": \"bash\", \"parameters\": {\"command\": \"grep \\\"it's\\\" *.rs\"},}",
        cut: "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"bash\", \"param",
    },
    Format {
        name: "minimax m1, hunyuan, apriel",
        one: "<tool_calls>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n</tool_calls>",
        two: "<tool_calls>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}\n</tool_calls>",
        odd: "<tool_calls>[{'name': 'bash', 'arguments': {'command': 'grep \"it\\'s\" *.rs'}}]</tool_calls>",
        cut: "<tool_calls>[{\"name\": \"bash\", \"arguments\": {",
    },
    Format {
        name: "minimax m2",
        one: "<minimax:tool_call>\n<invoke name=\"bash\">\n<parameter name=\"command\">ls -l</parameter>\n</invoke>\n</minimax:tool_call>",
        two: "<minimax:tool_call>\n<invoke name=\"bash\">\n<parameter name=\"command\">ls -l</parameter>\n</invoke>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a b.txt</parameter>\n<parameter name=\"limit\">5</parameter>\n</invoke>\n</minimax:tool_call>[e~[",
        odd: "<invoke name='bash'><parameter name='command'>grep \"it's\" *.rs</parameter></invoke>",
        cut: "<minimax:tool_call>\n<invoke name=\"bash\">\n<parameter name=\"command\">",
    },
    Format {
        name: "minimax m3",
        one: "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"bash\">]<]minimax[>[<command>ls -l]<]minimax[>[</command>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        two: "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"bash\">]<]minimax[>[<command>ls -l]<]minimax[>[</command>]<]minimax[>[</invoke>\n]<]minimax[>[<invoke name=\"read_file\">]<]minimax[>[<path>a b.txt]<]minimax[>[</path>]<]minimax[>[<limit>5]<]minimax[>[</limit>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>[e~[",
        odd: "]<]minimax[>[<invoke name=\"bash\">]<]minimax[>[<command>grep \"it's\" *.rs]<]minimax[>[</command>]<]minimax[>[</invoke>",
        cut: "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"bash\">]<]minimax[>[<command>ls",
    },
    Format {
        name: "functionary 3.2",
        one: ">>>bash\n{\"command\": \"ls -l\"}",
        two: ">>>bash\n{\"command\": \"ls -l\"}\n>>>read_file\n{\"path\": \"a b.txt\", \"limit\": 5}<|eot_id|>",
        odd: ">>>bash\n{'command': 'grep \"it\\'s\" *.rs'}",
        cut: ">>>bash\n{\"comma",
    },
    Format {
        name: "functionary 2",
        one: "<|from|>assistant\n<|recipient|>bash\n<|content|>{\"command\": \"ls -l\"}<|stop|>",
        two: "<|recipient|>bash\n<|content|>{\"command\": \"ls -l\"}\n<|from|>assistant\n<|recipient|>read_file\n<|content|>{\"path\": \"a b.txt\", \"limit\": 5}<|stop|>",
        odd: "<|recipient|> bash\n<|content|>{'command': 'grep \"it\\'s\" *.rs'}",
        cut: "<|from|>assistant\n<|recipient|>bash\n<|content|>{\"command",
    },
    Format {
        name: "nemotron 1 and 2",
        one: "<TOOLCALL>[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}]</TOOLCALL>",
        two: "<TOOLCALL>[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}, {\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}]</TOOLCALL>",
        odd: "<TOOLCALL>[{\"name\": \"bash\", \"arguments\": {\"command\": \"grep \"it's\" *.rs\"}}]</TOOLCALL>",
        cut: "<TOOLCALL>[{\"name\": \"bash\"",
    },
    Format {
        name: "gemma 3, tool_code",
        one: "```tool_code\nprint(bash(command=\"ls -l\"))\n```",
        two: "```tool_code\nbash(command=\"ls -l\")\ndefault_api.read_file(path=\"a b.txt\", limit=5)\n```",
        odd: "```tool_call\n{'name': 'bash', 'arguments': {'command': 'grep \"it\\'s\" *.rs'}}\n```",
        cut: "```tool_code\nbash(command=\"ls",
    },
    Format {
        name: "gemma 4",
        one: "<|tool_call>call:bash{command:<|\"|>ls -l<|\"|>}<tool_call|>",
        two: "<|tool_call>call:bash{command:<|\"|>ls -l<|\"|>}<tool_call|><|tool_call>call:read_file{path:<|\"|>a b.txt<|\"|>,limit:5}<tool_call|><|tool_response>",
        odd: "<|tool_call>call:bash{command:<|\"|>grep \"it's\" *.rs<|\"|>}",
        cut: "<|tool_call>call:bash{command:<|\"|>ls",
    },
    Format {
        name: "functiongemma",
        one: "<start_function_call>call:bash{command:<escape>ls -l<escape>}<end_function_call>",
        two: "<start_function_call>call:bash{command:<escape>ls -l<escape>}<end_function_call><start_function_call>call:read_file{path:<escape>a b.txt<escape>,limit:5}<end_function_call>",
        odd: "<start_function_call>call:bash{command:<escape>grep \"it's\" *.rs<escape>}<end_function_call>",
        cut: "<start_function_call>call:bash{command:",
    },
    Format {
        name: "minicpm 5",
        one: "<function name=\"bash\"><param name=\"command\">ls -l</param></function>",
        two: "<function name=\"bash\"><param name=\"command\">ls -l</param></function>\n<function name=\"read_file\"><param name=\"path\"><![CDATA[a b.txt]]></param><param name=\"limit\">5</param></function>",
        odd: "<function name=\"bash\"><param name=\"command\"><![CDATA[grep \"it's\" *.rs]]></param></function>",
        cut: "<function name=\"bash\"><param name=\"command\">ls",
    },
    Format {
        name: "phi 4",
        one: "functools[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}]",
        two: "functools[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}, {\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}]",
        odd: "<|tool_call|>[{\"type\": \"function\", \"function\": {\"name\": \"bash\", \"parameters\": {\"command\": \"grep \\\"it's\\\" *.rs\"}}}]<|/tool_call|>",
        cut: "functools[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls",
    },
    Format {
        name: "xlam, a bare list",
        one: "[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}]",
        two: "[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}, {\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}]",
        odd: "[{'name': 'bash', 'arguments': {'command': 'grep \"it\\'s\" *.rs'}}]",
        cut: "[{\"name\": \"bash\", \"arguments\": {\"command\": \"ls",
    },
    Format {
        name: "json in a fence",
        one: "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n```",
        two: "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls -l\"}}\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a b.txt\", \"limit\": 5}}\n```",
        odd: "```\n{\"tool_call\": {\"name\": \"bash\", \"arguments\": {\"command\": \"grep \\\"it's\\\" *.rs\"}}}\n```",
        cut: "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls",
    },
];

/// Returns whether the calls of a format are unmarked or in a fence: they count only where they are
/// the whole answer.
pub(super) fn is_unmarked_form(format: &Format) -> bool {
    ["```", "[bash", "[{", "{", "bash\n{"]
        .iter()
        .any(|begin| format.one.starts_with(begin))
}

/// Returns content, thought, calls, and the name of the incomplete call (empty where it has none);
/// the same for any split of the text.
#[track_caller]
pub(super) fn read(
    text: &str,
    hint: Option<&str>,
) -> (String, String, Vec<String>, Option<String>) {
    let hint = hint.map(|name| Hint::find(name).expect("a known hint"));
    let parsed = parse(text, &tools(), hint);
    let mut pieces = Parsed::default();
    let mut parser = Parser::new(&tools(), hint);
    for piece in text.split_inclusive(|_: char| true) {
        parser.feed(piece, &mut |piece| pieces.add(piece));
    }
    let incomplete = parser.finish(&mut |piece| pieces.add(piece));
    let pieces = pieces.ended(incomplete);
    assert_eq!(pieces, parsed, "character by character: {text}");
    let calls = parsed
        .calls
        .iter()
        .map(|call| format!("{} {}", call.name, compact(&call.arguments)))
        .collect();
    (
        parsed.content,
        parsed.reasoning,
        calls,
        parsed
            .incomplete
            .map(|incomplete| incomplete.name.unwrap_or_default()),
    )
}

fn compact(json: &str) -> String {
    serde_json::from_str::<serde_json::Value>(json)
        .expect("arguments are JSON")
        .to_string()
}

#[track_caller]
pub(super) fn check(
    what: &str,
    text: &str,
    content: &str,
    reasoning: &str,
    calls: &[&str],
    incomplete: Option<&str>,
) {
    let expected = (
        content.to_owned(),
        reasoning.to_owned(),
        calls
            .iter()
            .map(|call| (*call).to_owned())
            .collect::<Vec<_>>(),
        incomplete.map(str::to_owned),
    );
    assert_eq!(read(text, None), expected, "{what}: {text}");
}

pub(super) const LS: &str = r#"bash {"command":"ls -l"}"#;
pub(super) const READ: &str = r#"read_file {"path":"a b.txt","limit":5}"#;
const GREP: &str = r#"bash {"command":"grep \"it's\" *.rs"}"#;

#[test]
fn each_format_is_parsed() {
    for format in FORMATS {
        check(
            &format!("{}, clean", format.name),
            format.one,
            "",
            "",
            &[LS],
            None,
        );
        check(
            &format!("{}, several", format.name),
            format.two,
            "",
            "",
            &[LS, READ],
            None,
        );
        check(
            &format!("{}, odd quoting", format.name),
            format.odd,
            "",
            "",
            &[GREP],
            None,
        );
    }
}

#[test]
fn text_and_thoughts_around_calls_are_kept() {
    for format in FORMATS {
        let (before, behind) = (
            format!("I will look.\n\n{}\n", format.one),
            format!("{}\nThat is all.", format.one),
        );
        if is_unmarked_form(format) {
            check(
                &format!("{}, text before", format.name),
                &before,
                before.trim(),
                "",
                &[],
                Some("bash"),
            );
            check(
                &format!("{}, text behind", format.name),
                &behind,
                &behind,
                "",
                &[],
                Some("bash"),
            );
        } else {
            check(
                &format!("{}, text before", format.name),
                &before,
                "I will look.",
                "",
                &[LS],
                None,
            );
            check(
                &format!("{}, text behind", format.name),
                &behind,
                "That is all.",
                "",
                &[LS],
                None,
            );
        }
        let text = format!("<think>\nHm, `ls`?\n</think>\n\n{}", format.one);
        check(
            &format!("{}, thought before", format.name),
            &text,
            "",
            "Hm, `ls`?",
            &[LS],
            None,
        );
    }
}

#[test]
fn truncated_calls_are_reported_as_incomplete() {
    for format in FORMATS {
        check(
            &format!("{}, cut", format.name),
            format.cut,
            "",
            "",
            &[],
            Some("bash"),
        );
    }
}

#[test]
fn each_format_may_be_split_anywhere() {
    for format in FORMATS {
        for (at, _) in soak::sample(format.two.char_indices(), 10) {
            let (_, _, calls, _) = read(&format.two[..at], None);
            assert!(
                [vec![], vec![LS], vec![LS, READ]]
                    .iter()
                    .any(|some| *some == calls),
                "{} at {at}: {calls:?}",
                format.name
            );
        }
    }
}

#[test]
fn thoughts_are_separated_from_content() {
    let check = |text: &str, content: &str, reasoning: &str| {
        self::check("thought", text, content, reasoning, &[], None);
    };
    check("<think>\na\n</think>\n\nb", "b", "a");
    check("[THINK]a[/THINK]b", "b", "a");
    check("<seed:think>a</seed:think>b", "b", "a");
    check(
        "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>",
        "b",
        "a",
    );
    check(
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
        "b",
        "a",
    );
    check("<|channel>thought\na\n<channel|>b<turn|>", "b", "a");
    check("<think>a</think><response>b</response>", "b", "a");
    check("◁think▷a◁/think▷b", "b", "a");
    check("<assistant>b</assistant>", "b", "");
    // The template wrote the beginning.
    check("a\n</think>\n\nb", "b", "a");
    check("I think.</think>\nb", "b", "I think.");
    check("I think.</think> b", "b", "I think.");
    // Only mentioned.
    check(
        "Use <think> like </think> this.",
        "Use <think> like </think> this.",
        "",
    );
    check("b <think> c\n</think>", "b <think> c\n</think>", "");
    check(
        "The token <|im_end|> ends it.",
        "The token <|im_end|> ends it.",
        "",
    );
    self::check("unclosed", "<think>a", "", "a", &[], Some(""));
}

/// Functionary names the recipient of each part: `>>>all` is not content.
#[test]
fn text_addressed_to_all_is_separated_from_calls() {
    let call = ">>>bash\n{\"command\": \"ls -l\"}";
    check("words", ">>>all\nHello.", "Hello.", "", &[], None);
    check(
        "words, then a call",
        &format!(">>>all\nI list.\n{call}"),
        "I list.",
        "",
        &[LS],
        None,
    );
    check(
        "in one line",
        &format!(">>>all\nI list the files.{call}"),
        "I list the files.",
        "",
        &[LS],
        None,
    );
    check(
        "a call, then words",
        &format!("{call}\n>>>all\nDone > here."),
        "Done > here.",
        "",
        &[LS],
        None,
    );
    check("twice", ">>>all\na>>>all\nb", "a\nb", "", &[], None);
    check("nobody", ">>>all", "", "", &[], None);
    check(
        "whatever it says",
        &format!(">>>all\nFor example: {call}"),
        "For example:",
        "",
        &[LS],
        None,
    );
    // Elsewhere it is content.
    check(
        "python",
        ">>> all\nx >>>all\n",
        ">>> all\nx >>>all",
        "",
        &[],
        None,
    );
    check(
        "in code",
        "```\n>>>all\n```",
        "```\n>>>all\n```",
        "",
        &[],
        None,
    );
}

#[test]
fn marks_within_arguments_are_arguments() {
    let text = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"echo '</tool_call>' ```\"}}</tool_call>";
    check(
        "closing tag",
        text,
        "",
        "",
        &[r#"bash {"command":"echo '</tool_call>' ```"}"#],
        None,
    );
    let text = "<function=bash>\n<parameter=command>\ncat <<X\n<a></function> {\nX\n</parameter>\n</function>";
    check(
        "elements",
        text,
        "",
        "",
        &[r#"bash {"command":"cat <<X\n<a></function> {\nX"}"#],
        None,
    );
}

#[test]
fn a_missing_quote_does_not_swallow_later_calls() {
    let broken = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls}}</tool_call>";
    let (content, _, calls, incomplete) = read(&format!("{broken}\n{}", FORMATS[0].one), None);
    assert_eq!(
        (content.as_str(), calls, incomplete),
        (broken, vec![LS.to_owned()], Some("bash".to_owned()))
    );
}

#[test]
fn valid_arguments_are_the_models_own_bytes() {
    let written = "{ \"command\":\"\\u0061\" ,\"n\":1.0 }";
    for text in [
        format!("<tool_call>{{\"name\": \"bash\", \"arguments\": {written}}}</tool_call>"),
        format!("[TOOL_CALLS]bash[ARGS]{written}"),
        format!("[{{\"name\": \"bash\", \"arguments\": {written}}}]"),
        format!(
            "<tool_call>{{\"tool_call\": {{\"name\": \"bash\", \"arguments\": {written}}}}}</tool_call>"
        ),
    ] {
        let calls = parse(&text, &tools(), None).calls;
        assert_eq!(
            calls,
            [Call {
                name: "bash".into(),
                arguments: written.into()
            }],
            "{text}"
        );
    }
}

#[test]
fn a_hint_decides_ambiguous_texts() {
    assert_eq!(
        read("a", Some("deepseek-r1")),
        (String::new(), "a".into(), vec![], Some(String::new()))
    );
    assert_eq!(
        read("a</think>b", Some("deepseek-r1")),
        ("b".into(), "a".into(), vec![], None)
    );
    assert_eq!(
        read("<think>a</think>b", Some("deepseek-r1")),
        ("b".into(), "a".into(), vec![], None)
    );
}

#[test]
fn without_tools_everything_is_content() {
    for format in FORMATS {
        assert_eq!(
            parse(format.two, &Tools::default(), None).calls,
            [],
            "{}",
            format.name
        );
    }
}
