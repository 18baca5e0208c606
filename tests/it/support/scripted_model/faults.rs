use serde_json::Value;

/// Returns what is wrong with a conversation.
pub(crate) fn faults(request: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(messages) = request["messages"].as_array() else {
        return vec!["the request has no messages".to_owned()];
    };
    let mut open: Vec<&str> = Vec::new();
    let mut last_role = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        match role {
            "tool" => match open.iter().position(|&one| one == id) {
                Some(found) => {
                    open.remove(found);
                }
                None => faults.push(format!(
                    "message {at} is the result of `{id}`, which nobody called"
                )),
            },
            _ if !open.is_empty() => {
                faults.push(format!("message {at} comes before the results of {open:?}"));
                open.clear();
            }
            _ => {}
        }
        match role {
            "system" if at > 0 => faults.push(format!("message {at} is a second system message")),
            "user" | "assistant" if role == last_role => faults.push(format!(
                "messages {} and {at} are both the {role}'s",
                at - 1
            )),
            "system" | "user" | "tool" | "assistant" => {}
            other => faults.push(format!("message {at} has the role `{other}`")),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap_or_default());
            let arguments = call["function"]["arguments"]
                .as_str()
                .and_then(|text| serde_json::from_str::<Value>(text).ok());
            if !arguments.is_some_and(|value| value.is_object()) {
                faults.push(format!(
                    "message {at} repeats arguments that are no JSON object"
                ));
            }
        }
        last_role = role;
    }
    if !open.is_empty() {
        faults.push(format!("the results of {open:?} are missing"));
    }
    if last_role != "user" && last_role != "tool" {
        faults.push(format!("the last message is the {last_role}'s"));
    }
    faults
}
