use pulldown_cmark::CowStr;
use pulldown_cmark::Event;
use pulldown_cmark::Options;
use pulldown_cmark::Parser;
use pulldown_cmark::Tag;
use pulldown_cmark::TagEnd;

/// What a page may do when it is opened: nothing but show itself. What a model wrote must not load
/// an image from elsewhere, which would tell who reads it.
const HEAD: &str = "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n<style>\nbody { font: 16px/1.5 sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; }\n\
pre { background: #8881; padding: .7em; overflow-x: auto; }\ncode { font: 14px monospace; }\ntable { border-collapse: collapse; }\ntd, th { border: 1px solid #8886; padding: .2em .6em; }\n\
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } a { color: #8bf; } }\n</style>";

/// Renders Markdown as a page of its own. HTML in it is shown as text, images are their words, and
/// only links to the web and to mail are links.
pub fn html_page(title: &str, markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(markdown, options).filter_map(harmless);
    let mut body = String::new();
    pulldown_cmark::html::push_html(&mut body, events);
    let title = title
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!(
        "<!doctype html>\n<html>\n<head>\n{HEAD}\n<title>{title}</title>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

fn harmless(event: Event<'_>) -> Option<Event<'_>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: if is_plain(&dest_url) {
                dest_url
            } else {
                CowStr::Borrowed("#")
            },
            title,
            id,
        }),
        other => other,
    })
}

fn is_plain(address: &str) -> bool {
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| address.to_ascii_lowercase().starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_what_was_written_and_executes_none_of_it() {
        let page = html_page(
            "a <b>",
            "# Title\n\n**bold** <script>alert(1)</script>\n\n<img src=x onerror=y>\n\n![words](https://x/i.png) [ok](https://x/) [bad](javascript:alert(1))\n\n| a |\n| - |\n| b |\n\n```\n<x>\n```\n",
        );
        for there in [
            "<title>a &lt;b&gt;</title>",
            "<h1>Title</h1>",
            "<strong>bold</strong>",
            "&lt;script&gt;",
            "&lt;img src=x",
            "words",
            "<a href=\"https://x/\">ok</a>",
            "<a href=\"#\">bad</a>",
            "<td>b</td>",
            "&lt;x&gt;",
        ] {
            assert!(page.contains(there), "{there}: {page}");
        }
        for gone in ["<script", "<img", "javascript:"] {
            assert!(!page.contains(gone), "{gone}: {page}");
        }
    }
}
