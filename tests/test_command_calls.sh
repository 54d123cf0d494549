#!/usr/bin/env bash
# Calls of functions by the server's interfaces: of models that call by themselves, in text and with control tokens of
# their own, and of one that has to; whole answers, streams, results, refusals.
. "$(dirname "$0")/serve.sh"
"$(dirname "$peridot")/tests/write_thinkers" "$folder" || exit 1
demo=$model

numbers='{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "maximum": 99}},
    "required": ["a", "b"], "additionalProperties": false}'
add='{"type": "function", "function": {"name": "add", "description": "Adds two numbers.", "parameters": '$numbers'}}'
sub='{"type": "function", "function": {"name": "sub", "parameters": '$numbers'}}'
user='{"role": "user", "content": "hello"}'
called='{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function":
    {"name": "add", "arguments": "{\"a\": 2, \"b\": 40}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "42"}'

# chat MESSAGES MORE...: asks for a chat completion.
chat() { ask /v1/chat/completions '{"messages": ['"$1"']'"${2:+, $2}"', "temperature": '"${temperature:-0}"'}'; }
# refused TEXT MESSAGES MORE
refused() {
    chat "$2" "${3:-}"
    check "$3 is refused" [ "$status" = 400 ]
    check "$3: says '$1'" contains out "$1"
}

test_caller() {   # test_caller MODEL: it calls add, and answers with its result
    model=$folder/$1
    start
    chat "$user" '"tools": ['"$add"']'
    check "$1 is answered" [ "$status" = 200 ]
    check "$1 calls the function" matches out \
        '"tool_calls":\[\{"id":"call_[0-9a-f]{16}","type":"function","function":\{"name":"add","arguments":"'
    check "$1 gives the arguments as JSON text" contains out '"arguments":"{\"a\":'
    check "$1 has no text" contains out '"content":null'
    check "$1 says why it ended" contains out '"finish_reason":"tool_calls"'
    chat "$user, $called" '"tools": ['"$add"']'
    check "$1 answers with the result" contains out '"content":"hello model"'
    check "$1 ends as other answers do" contains out '"finish_reason":"stop"'
    chat "$user" '"stream": true, "tools": ['"$add"']'
    check "the first event of a call has its name" matches out \
        '"tool_calls":\[\{"index":0,"id":"call_[0-9a-f]*","type":"function","function":\{"name":"add","arguments":""\}'
    arguments=$(grep -oE '"arguments":"([^"\\]|\\.)*"' "$folder/out" |
        sed -E 's/^"arguments":"(.*)"$/\1/' | tr -d '\n ')
    check "its arguments are the pieces together, and not $arguments" [ "$arguments" = '{\"a\":2,\"b\":40}' ]
    check "the stream says why it ended" contains out '"delta":{},"logprobs":null,"finish_reason":"tool_calls"'
    ask /v1/responses '{"input": "hello", "temperature": 0,
        "tools": [{"type": "function", "name": "add", "parameters": '"$numbers"'}]}'
    check "a response has the call as an item" matches out \
        '\[\{"id":"fc_[0-9a-f]*","type":"function_call","status":"completed","call_id":"call_[0-9a-f]*","name":"add"'
    id=$(field call_id)
    ask /v1/responses '{"input": [{"role": "user", "content": "hello"}, {"type": "function_call", "call_id": "'"$id"'",
        "name": "add", "arguments": "{}"}, {"type": "function_call_output", "call_id": "'"$id"'", "output": "42"}],
        "temperature": 0, "tools": [{"type": "function", "name": "add", "parameters": '"$numbers"'}]}'
    check "and answers with its result" contains out '"text":"hello model"'
    ask /v1/responses '{"input": "hello", "temperature": 0, "stream": true, "tools": ['"$add"']}'
    check "a stream of a response has the call's events" [ "$(grep -c '^event: ' "$folder/out")" -ge 7 ]
    for event in output_item.added function_call_arguments.delta function_call_arguments.done output_item.done \
        completed; do
        check "$event" matches out "^event: response.$event\$"
    done
    check "and none of a message" lacks out 'response.output_text'
    test_anthropic
    test_ollama
    test_schema
    stop
}

test_anthropic() {
    local tools='"max_tokens": 500, "temperature": 0, "tools": [{"name": "add", "input_schema": '$numbers'}]'
    ask /v1/messages '{"messages": ['"$user"'], '"$tools"'}'
    check "Anthropic's interface gets the call as a block" matches out \
        '\[\{"type":"tool_use","id":"call_[0-9a-f]*","name":"add","input":\{"a":2,"b":40\}\}\],"stop_reason":"tool_use"'
    ask /v1/messages '{"stream": true, "messages": ['"$user"'], '"$tools"'}'
    check "and as events" matches out \
        '"content_block":\{"type":"tool_use","id":"call_[0-9a-f]*","name":"add","input":\{\}\}'
    check "of its arguments" contains out '"delta":{"type":"input_json_delta","partial_json":"'
    ask /v1/messages '{"messages": ['"$user"', {"role": "assistant", "content": [{"type": "tool_use", "id": "c1",
        "name": "add", "input": {"a": 2, "b": 40}}]}, {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
        {"type": "text", "text": "42"}]}]}], '"$tools"'}'
    check "and answers with its result" contains out '[{"type":"text","text":"hello model"}],"stop_reason":"end_turn"'
    ask /v1/messages '{"messages": ['"$user"'], '"$tools"', "tool_choice": {"type": "none"}}'
    check "and calls none where it may not" lacks out tool_use
}

test_ollama() {
    local options='"tools": ['"$add"'], "options": {"temperature": 0}'
    ask /api/chat '{"model": "x", "stream": false, "messages": ['"$user"'], '"$options"'}'
    check "Ollama's interface has the call in the message" matches out \
        '"tool_calls":\[\{"id":"[a-z_0-9]*","function":\{"index":0,"name":"add","arguments":\{"a":2,"b":40\}\}\}\]'
    ask /api/chat '{"model": "x", "messages": ['"$user"'], '"$options"'}'
    check "and in a line of its own" [ "$(grep -c '"tool_calls"' "$folder/out")" = 1 ]
    ask /api/chat '{"model": "x", "stream": false, "messages": ['"$user"', {"role": "assistant", "content": "",
        "tool_calls": [{"function": {"name": "add", "arguments": {"a": 2, "b": 40}}}]},
        {"role": "tool", "tool_name": "add", "content": "42"}], '"$options"'}'
    check "and answers with its result" contains out '"content":"hello model"'
}

lacks() { ! contains "$1" "$2"; }

# What is no call follows the schema.
test_schema() {
    local format='"tools": ['"$add"'], "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema":
        {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"],
        "additionalProperties": false}}}'
    chat "$user" "$format"
    check "a model calls where its answer has a schema" contains out '"name":"add"'
    chat "$user, $called" "$format"
    check "and answers by the schema" matches out '"content":" ?\{[^}]*mood[^}]*(good|bad)[^}]*\}"'
    check "whose end is the answer's" contains out '"finish_reason":"stop"'
}

test_plain() {   # a model whose template writes no calls
    model=$folder/caller.gguf
    start
    chat "$user"
    check "without tools a call is text" contains out '<tool_call>'
    n=$(field prompt_tokens)
    chat "$user" '"chat_template_kwargs": {"hint": "hello", "enable_thinking": false}'
    check "a variable is the template's" [ "$(field prompt_tokens)" -gt "$n" ]
    refused "must be an object" "$user" '"chat_template_kwargs": ["hint"]'
    chat "$user" '"tools": ['"$add"']'
    n=$(field prompt_tokens)
    chat "$user" '"tools": ['"$add"'], "tool_choice": "none"'
    check "with the choice none, too" contains out '<tool_call>'
    check "and the tools are in the prompt still, which is in the cache" \
        [ "$(field prompt_tokens) $(field cached_tokens)" = "$n $((n - 1))" ]
    chat "$user, $called, $user" '"max_tokens": 1'
    n=$(field prompt_tokens)
    chat "$user, ${called/\\\"a\\\": 2, \\\"b\\\": 40\}/\\\"a\\\": }, $user" '"max_tokens": 1'
    check "a call that was cut is read without arguments" [ "$status" = 200 ]
    check "which are fewer tokens" [ "$(field prompt_tokens)" -lt "$n" ]
    chat "$user" '"tools": ['"$sub"', '"$add"'], "max_tokens": 200,
        "tool_choice": {"type": "function", "function": {"name": "sub"}}'
    check "a function that is named is called" contains out '"name":"sub"'
    chat "$user" '"tools": ['"$sub"']'
    check "one that is not there is never called" lacks out '"name":"add"'
    local both='"tools": ['"$add, $sub"'], "max_tokens": 200'
    chat "$user" "$both"
    n=$(field prompt_tokens)
    check "of two functions the model chooses" contains out '"name":"add"'
    chat "$user" "$both"', "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools":
        [{"type": "function", "function": {"name": "sub"}}]}}'
    check "but among those that are allowed" contains out '"name":"sub"'
    check "while the prompt, which is in the cache, has all" \
        [ "$(field prompt_tokens) $(field cached_tokens)" = "$n $((n - 1))" ]
    refused "allows none of the tools" "$user" "$both"', "tool_choice": {"type": "allowed_tools", "mode": "auto",
        "tools": [{"type": "function", "name": "mul"}]}'
    local first second='{"role": "tool", "tool_call_id": "c1", "content": "43"}'
    local last='{"role": "assistant", "tool_calls": [{"id": "c2", "function": {"name": "add", "arguments": "{\"a\": '
    chat "$user, $called, $second, ${last}1}\"}}]}, $user" '"max_tokens": 1'
    first=$(field prompt_tokens)
    chat "$user, $called, $second, ${last}123456789}\"}}]}, $user" '"max_tokens": 1'
    check "a call after several results is read" [ "$(field prompt_tokens)" -gt "$first" ]
    stop
}

# loosened SCHEMA PROPERTIES: a tool whose schema is not supported is called with the properties that it declares.
loosened() {
    local tools='[{"type": "function", "function": {"name": "odd", "parameters": '$1'}}]'
    ask /v1/chat/completions '{"messages": ['"$user"'], "seed": 1, "max_tokens": 400, "tools": '"$tools"',
        "tool_choice": {"type": "function", "function": {"name": "odd"}}}' -D "$folder/headers"
    check "$1 is answered" [ "$status" = 200 ]
    check "$1: a header says so" grep -q '^Warning: 299 - "schemas were made looser, of odd"' "$folder/headers"
    python3 - "$folder/out" "$2" <<'PY' || failed "$1: the call has its properties"
import json, sys
calls = json.load(open(sys.argv[1]))["choices"][0]["message"]["tool_calls"]
assert calls[0]["function"]["name"] == "odd"
assert ",".join(json.loads(calls[0]["function"]["arguments"])) == sys.argv[2]
PY
}

test_loosened() {
    loosened '{"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "integer",
        "not": {"const": 1}}}, "required": ["a", "b"], "additionalProperties": false}' a,b
    loosened '{"type": "object", "properties": {"a": {"enum": ["x"], "maxLength": 1}, "c": {"type": "string",
        "pattern": "(?=x)y", "enum": ["yes"]}}, "required": ["a", "c", "none"], "additionalProperties": false}' a,c
    loosened '{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "if": {}, "then": {},
        "additionalProperties": false}' a
    ask /v1/chat/completions '{"messages": ['"$user"'], "max_tokens": 1, "tools": [{"type": "function", "function":
        {"name": "script", "parameters": {"type": "object", "properties": {"text": {"type": "string",
        "maxLength": 524288}}}}}]}'
    check "a bound that is too large is none" [ "$status" = 200 ]
}

# A model that knows of no calls has to make one.
test_forced() {
    model=$demo
    start
    for seed in 1 2 3; do
        temperature=1 chat "$user" '"seed": '$seed', "max_tokens": 300, "tools": ['"$add"', '"$sub"'],
            "tool_choice": "required", "parallel_tool_calls": false'
        check "it calls one of them (seed $seed)" matches out '"name":"(add|sub)"'
        check "with arguments by the schema (seed $seed)" python3 - "$folder/out" <<'PY'
import json, sys
calls = json.load(open(sys.argv[1]))["choices"][0]["message"]["tool_calls"]
(call,) = calls
arguments = json.loads(call["function"]["arguments"])
assert sorted(arguments) == ["a", "b"] and arguments["b"] <= 99 and all(type(x) is int for x in arguments.values())
PY
    done
    chat "$user" '"seed": 1, "max_tokens": 300, "tools": ['"$add"'], "tool_choice": "required",
        "response_format": {"type": "json_object"}'
    check "a format of text has no part in a reply of calls alone" contains out '"finish_reason":"tool_calls"'
    local custom='{"input": "hello", "seed": 1, "max_output_tokens": 400,
        "tools": [{"type": "custom", "name": "patch"}], "tool_choice": {"type": "custom", "name": "patch"}'
    ask /v1/responses "$custom}"
    check "a custom tool is called with a text" matches out \
        '"type":"custom_tool_call","status":"completed","call_id":"call_[0-9a-f]*","name":"patch","input":"'
    call=$(field input)
    ask /v1/responses "$custom, \"stream\": true}"
    check "which a stream has whole" contains out '"type":"response.custom_tool_call_input.delta"'
    check "and is the same" contains out "$call"
    check "its arguments are nowhere" lacks out 'function_call_arguments'
    ask /v1/responses '{"input": "hello", "seed": 1, "max_output_tokens": 400, "tool_choice": "required",
        "tools": [{"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "add",
        "parameters": '"$numbers"'}]}]}'
    check "a function of a namespace is called with it" matches out '"name":"add","namespace":"mcp","arguments":"'
    test_grammars
    refused "tool_choice needs tools" "$user" '"tool_choice": "required"'
    refused "must be none, auto, required or a function" "$user" '"tool_choice": "perhaps", "tools": ['"$add"']'
    refused "must be a list of functions" "$user" '"tools": {}'
    refused "add" "$user" '"tools": ['"$add"', '"$add"']'
    refused "nothing" "$user" \
        '"tools": ['"$add"'], "tool_choice": {"type": "function", "function": {"name": "nothing"}}'
    refused "tool f: " "$user" \
        '"tools": [{"type": "function", "function": {"name": "f", "strict": true, "parameters": {"not": {}}}}]'
    test_loosened
    refused "whose arguments are not a JSON object" \
        '{"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": "[1]"}}]}' '"tools": ['"$add"']'
    refused "must be a string" '{"role": "user"}' '"n": 1'
    chat "$user, $called" '"max_tokens": 4'
    check "a conversation may have calls without tools now" [ "$status" = 200 ]
    stop
}

# What agents send beside functions: tools that are told later, and those of another server.
test_deferred() {
    local count=/v1/messages/count_tokens n told more
    local later='{"name": "later", "description": "Does it.", "defer_loading": true}'
    local tools='"tools": [{"name": "add", "input_schema": '$numbers'}'
    local result='{"type": "tool_result", "tool_use_id": "c1"'
    local search='{"role": "assistant", "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search",
        "input": {}}, {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 2, "b": 40}}]}'
    model=$folder/caller.gguf
    start
    ask $count '{"messages": ['"$user"'], '"$tools"']}'
    n=$(field input_tokens)
    ask $count '{"messages": ['"$user"'], '"$tools, $later"']}'
    check "a prompt does not begin with a tool that is deferred" [ "$(field input_tokens)" = "$n" ]
    ask $count '{"messages": ['"$user, $search"', {"role": "user", "content": ['"$result"'}]}], '"$tools, $later"']}'
    n=$(field input_tokens)
    more=', "content": [{"type": "tool_reference", "tool_name": "later"}]}]}], '
    ask $count '{"messages": ['"$user, $search"', {"role": "user", "content": ['"$result$more$tools, $later"']}'
    told=$(($(field input_tokens) - n))
    check "where a result refers to it, it is told: $told tokens" [ $told -gt 30 ]
    more=', "content": "a\u0000b"}]}], "max_tokens": 9, '
    ask /v1/messages '{"messages": ['"$user, $search"', {"role": "user", "content": ['"$result$more$tools"']}' \
        -D "$folder/headers"
    check "a result may have a NUL in it" [ "$status" = 200 ]
    check "what another server's tools did is left out" matches headers \
        '^Warning: 299 - "ignored: server_tool_use, web_search_tool_result"'
    ask /v1/messages '{"messages": ['"$user"'], "max_tokens": 9, "tools": [{"type": "web_search_20250305",
        "name": "web_search"}], "tool_choice": {"type": "tool", "name": "web_search"}}' -D "$folder/headers"
    check "and a choice of one that is left out is, too" matches headers 'ignored: web_search_20250305, tool_choice"'
    ask /v1/responses '{"input": "hello", "max_output_tokens": 9, "tools": [{"type": "web_search"}],
        "tool_choice": {"type": "web_search"}}'
    check "in responses as well" [ "$status" = 200 ]
    stop
}

# custom SYNTAX DEFINITION: calls a tool of texts of a grammar; which text is in $call.
custom() {
    ask /v1/responses '{"input": "hello", "seed": 1, "max_output_tokens": 400, "tools": [{"type": "custom",
        "name": "patch", "format": {"type": "grammar", "syntax": "'"$1"'", "definition": "'"$2"'"}}],
        "tool_choice": {"type": "custom", "name": "patch"}}' -D "$folder/headers"
    call=$(field input)
}

test_grammars() {
    custom lark 'start: (YES | \"no\") \"!\" ~ 2 LF\nYES: \"yes\"\n%import common.LF\n'
    check "a custom tool's text is of its grammar: $call" grep -qE '^(yes|no)!!\\n$' <<<"$call"
    check "which nothing is said of" lacks headers Warning
    custom regex '[ab]{3}\\.'
    check "or of its regular expression: $call" grep -qE '^[ab]{3}\.$' <<<"$call"
    custom lark 'start: \"(\" start \")\" |\n'
    check "it is any text where it has no end" matches headers '^Warning: 299 - "ignored: tools.format"'
    custom regex '(?=a)b(?<!c)'
    check "or is not understood" matches headers '^Warning: 299 - ".*patch'
    chat "$user" '"seed": 1, "max_tokens": 400, "tools": [{"type": "custom", "custom": {"name": "patch", "format":
        {"type": "grammar", "grammar": {"syntax": "regex", "definition": "no|yes"}}}}], "tool_choice": "required"'
    check "chat completions have it one object deeper" matches out \
        '"type":"custom","custom":\{"name":"patch","input":"(no|yes)"\}'
    call=$(field input)
    chat "$user" '"seed": 1, "max_tokens": 400, "stream": true, "tools": [{"type": "custom", "custom": {"name": "patch",
        "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "no|yes"}}}}],
        "tool_choice": "required"'
    check "also in a stream, whole" contains out '"tool_calls":[{"index":0,"custom":{"input":"'"$call"'"}}]'
    chat "$user"', {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "patch",
        "arguments": "{\"input\": \"yes\"}"}}]}, '"$user" '"max_tokens": 1'
    n=$(field prompt_tokens)
    chat "$user"', {"role": "assistant", "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "patch",
        "input": "yes"}}]}, '"$user" '"max_tokens": 1'
    check "and in the history" [ "$(field prompt_tokens)" = "$n" ]
}

tokens() { field "${1:-prompt_tokens}"; }

# gpt-oss: thoughts, calls and answers are messages with channels; how much it thinks is said in its template.
test_harmony() {
    model=$folder/harmony.gguf
    start
    local tools='"tools": ['"$add"']' n result='{"role": "tool", "tool_call_id": "c1", "content": "42"}'
    chat "$user"
    check "harmony: a thought and an answer" contains out '"content":"hello model","reasoning_content":"hmm"'
    check "which <|return|> ends" contains out '"finish_reason":"stop"'
    chat "$user" '"stream": true'
    check "harmony: a stream has the thought" contains out '"reasoning_content":"hmm"'
    check "and the answer, without headers" [ "$(deltas)" = "hello model" ]
    chat "$user" "$tools"
    check "harmony: a call after a thought" contains out '"reasoning_content":"well"'
    check "and no text" contains out '"content":null,"tool_calls":[{"id":"'
    check "with its arguments, which <|call|> ends" matches out \
        '"arguments":"\{\\"a\\": 2, \\"b\\": 40\}"\}\}\].*"finish_reason":"tool_calls"'
    chat "$user" "$tools"', "stream": true'
    check "harmony: a stream has the thought of a call" contains out '"reasoning_content":"well"'
    check "and the call" contains out '"name":"add","arguments":""'
    check "and no text" [ "$(deltas)" = "" ]
    chat "$user, $called" "$tools"
    check "harmony: an answer with the result" contains out '"content":"hello model"'
    n=$(tokens)
    local thought=${called/null/null, \"reasoning_content\": \"the the\"} two said
    chat "$user, $thought" "$tools"
    check "harmony: the thought of a call is read until the answer" [ "$(tokens)" -gt "$n" ]
    said='{"role": "assistant", "content": "he"'
    chat "$user, $called, $said}, $user" "$tools"
    n=$(tokens)
    chat "$user, $thought, $said, \"reasoning_content\": \"the\"}, $user" "$tools"
    check "and those before an answer are not" [ "$(tokens)" = "$n" ]
    two='{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}'
    two='{"role": "assistant", "content": null, "tool_calls": ['"$two, ${two/c1/c2}"']}'
    chat "$user, $two, $result, ${result/c1/c2}" "$tools"
    check "harmony: two calls of a turn are two messages" contains out '"content":"hello model"'
    test_harmony_efforts
    test_harmony_interfaces
    ask /v1/messages '{"stream": true, "messages": ['"$user"'], "max_tokens": 500, "temperature": 0}'
    check "harmony: a stream of Anthropic's has the thought" contains out '"type":"thinking_delta","thinking":"hmm"'
    said='{"role": "assistant", "content": "hello model"}'
    chat "$user, $said, $user, $said"
    n=$(($(tokens) + 4))   # with the last reply's thought, without its end and the next one's beginning
    stop
    printf 'hello\nhello\n/stats\n' | "$peridot" chat -m "$model" --temp 0 >"$folder/out" 2>"$folder/err"
    check "harmony: a chat has the answers" [ "$(grep -c '^hello model$' "$folder/out")" = 2 ]
    check "and says how long thoughts were" [ "$(grep -c '^thought for 1 token' "$folder/err")" = 2 ]
    check "whose context is the template's" matches err "^context: $n of"
    model=$folder/harmony-name.gguf
    start
    chat "$user" "$tools"
    check "harmony: a call with its name first" matches out \
        '"arguments":"\{\\"a\\": 2, \\"b\\": 40\}"\}\}\].*"finish_reason":"tool_calls"'
    check "whose header is no text" contains out '"content":null'
    test_harmony_interfaces
    stop
}

# A call after a thought, wherever its header has the name.
test_harmony_interfaces() {
    ask /v1/responses '{"input": "hello", "temperature": 0,
        "tools": [{"type": "function", "name": "add", "parameters": '"$numbers"'}]}'
    check "harmony: a response has the thought as an item" matches out '"type":"reasoning".*"text":"well"'
    check "and the call" matches out '"type":"function_call","status":"completed","call_id":"[^"]*","name":"add"'
    ask /v1/messages '{"messages": ['"$user"'], "max_tokens": 500, "temperature": 0,
        "tools": [{"name": "add", "input_schema": '"$numbers"'}]}'
    check "harmony: Anthropic's interface has the thought and the call as blocks" matches out \
        '"type":"thinking","thinking":"well".*"type":"tool_use".*"input":\{"a":2,"b":40\}\}\],"stop_reason":"tool_use"'
    ask /api/chat '{"model": "x", "stream": false, "messages": ['"$user"'], '"$tools"', "options": {"temperature": 0}}'
    check "harmony: Ollama's has them in the message" matches out '"thinking":"well","tool_calls":\[\{'
}

# efforts TEXT PATH BODY FIELDS...: the prompt of BODY has TEXT as its effort: as many tokens as when the template is
# given that. They are the sum of the fields.
efforts() {
    local sum=0 name
    chat "$user" '"max_tokens": 1, "chat_template_kwargs": {"reasoning_effort": "'"$1"'"}'
    local n; n=$(tokens)
    ask "$2" '{"messages": ['"$user"'], "model": "x", '"$3"'}'
    for name in "${@:4}"; do sum=$((sum + $(tokens "$name"))); done
    check "harmony: $3 is the effort $1" [ "$sum" = "$n" ]
}

test_harmony_efforts() {
    local each
    for each in low:low medium:medium high:high none:low max:high; do
        efforts ${each#*:} /v1/chat/completions '"max_tokens": 1, "reasoning_effort": "'${each%:*}'"' prompt_tokens
    done
    efforts high /v1/chat/completions '"max_tokens": 1, "reasoning": {"effort": "high"}' prompt_tokens
    efforts high /v1/messages '"max_tokens": 1, "output_config": {"effort": "high"}' \
        input_tokens cache_read_input_tokens
    ask /v1/messages '{"messages": ['"$user"'], "max_tokens": 1, "output_config": {"effort": "high", "x": 1}}' \
        -D "$folder/headers"
    check "harmony: an effort that counts is not said to be ignored" matches headers '^Warning: 299 - "ignored: x"'
    efforts low /api/chat '"stream": false, "think": "low", "options": {"num_predict": 1}' prompt_eval_count
}

test_caller caller.gguf
test_deferred
for format in gemma4 mistral mistral-v3 granite phi4 olmo hermes; do
    test_caller caller-$format.gguf
done
test_harmony
test_plain
test_forced
finish
