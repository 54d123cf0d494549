#!/usr/bin/env bash
# peridot serve, asked by programs that were written for other servers, which come from PyPI, two agents among them; for
# half a minute by one that makes requests of /openapi.json (PERIDOT_TEST_SECONDS: how long). With PERIDOT_TEST_MANY for
# an hour. With PERIDOT_TEST_ALL also by frameworks for agents, by attackers, and by many at once.
. "$(dirname "$0")/serve.sh"

command -v python3 >/dev/null || { echo "skipped: Python is not there"; exit 0; }
seconds=30 requests=(--seed 1)   # the same ones every time, so that whoever changed nothing breaks nothing
[ ! "${PERIDOT_TEST_MANY:-}" ] || seconds=3600 requests=()
clients=$folder/venv/bin
export LLM_USER_PATH=$folder/llm
"$(dirname "$peridot")/tests/write_thinkers" "$folder" || exit 1   # models that call a function

# python TITLE FILE ARGUMENTS...
python() {
    python3 "$source/tests/$2" "${@:3}" >"$folder/out" 2>"$folder/err"
    check "$1" [ $? = 0 ]
}

# start_both: a server of the model that calls, at $caller, whose process is $calling; and one of the demo model.
start_both() {
    model=$folder/caller.gguf
    start
    caller=$url calling=$server model=$source/models/stories.gguf
    start --ctx 512
}

stop_both() {
    stop
    server=$calling
    stop
}

# frameworks PACKAGE...: are answered, by both servers.
frameworks() {
    "$clients/python" "$source/tests/serve_clients_agents.py" "$caller" "$url" "$@" >"$folder/out" 2>"$folder/err"
    check "$*: all is answered, and functions are called" [ $? = 0 ]
}

# Each with its packages by itself, as not all of them go together.
test_agents() {
    local tests packages
    start_both
    while read -r tests packages; do
        rm -rf "$folder/venv"
        # shellcheck disable=SC2086   # several words
        packages $packages || continue
        # shellcheck disable=SC2086
        frameworks ${tests//,/ }
    done <<EOF
langchain_openai,langchain langchain-openai==1.7.4 langchain==1.5.2
litellm litellm==1.110.2
agents openai-agents==0.24.0
instructor instructor==1.17.0
llama_index llama-index-llms-openai-like==0.8.1 llama-index-core==0.14.25
EOF
    stop_both
}

test_packages() {
    local name
    start --ctx 512   # which ends the texts of requests that set no length
    "$clients/python" "$source/tests/serve_clients.py" "$url/v1" >"$folder/out" 2>"$folder/err"
    check "the packages openai and llm are answered as by OpenAI" [ $? = 0 ]
    "$clients/python" "$source/tests/serve_clients_anthropic.py" "$url" >"$folder/out" 2>"$folder/err"
    check "the package anthropic is answered as by Anthropic" [ $? = 0 ]
    "$clients/python" "$source/tests/serve_clients_ollama.py" "$url" >"$folder/out" 2>"$folder/err"
    check "the package ollama is answered as by Ollama" [ $? = 0 ]
    "$clients/python" -c 'import sys; from prometheus_client.parser import text_string_to_metric_families as read
print(*(family.name for family in read(sys.stdin.read())))' < <(curl -s "$url/metrics") >"$folder/out" 2>"$folder/err"
    check "/metrics is what Prometheus reads" matches out '^peridot_requests .* peridot_request_seconds$'
    # Which token ids, lengths and schemas the model takes is not in the document: valid requests may be refused. Nor
    # is it an error that a response is not found which was not to be kept. Left out are /infill, which is 501, as
    # llama.cpp's server has it, of a model without tokens for it, and /completion, which writes to the end of the
    # context where nothing else is said: for 2,048 prompts that takes an hour.
    (cd "$folder" && "$clients/schemathesis" --no-color run "$url/openapi.json" \
        --max-time "${PERIDOT_TEST_SECONDS:-$seconds}" "${requests[@]}" --request-timeout 600 \
        --exclude-path-regex '^/(completion|infill)$' \
        --exclude-checks positive_data_acceptance,ensure_resource_availability \
        --continue-on-failure --suppress-health-check all) >"$folder/out" 2>"$folder/err"
    check "schemathesis finds all as /openapi.json says" [ $? = 0 ]
    stop
    for name in caller caller-gemma4; do
        model=$folder/$name.gguf start
        "$clients/python" "$source/tests/serve_clients_calls.py" "$url" >"$folder/out" 2>"$folder/err"
        check "the same packages call tools of $name" [ $? = 0 ]
        stop
    done
    make_seer "$folder/seer"
    model=$folder/seer start
    "$clients/python" "$source/tests/serve_clients_images.py" "$url" "$goldens/gemma3-vision/image-1.png" \
        >"$folder/out" 2>"$folder/err"
    check "and show images to a model that sees" [ $? = 0 ]
    stop
    start_both
    frameworks llm pydantic_ai
    stop_both
}

# task NAME COMMAND...: it puts "new" in the place of "old" in note.txt, by a model that reads the file, edits it and
# answers. Nothing of this machine's is told to it.
task() {
    mkdir -p "$folder/task"
    echo old >"$folder/task/note.txt"
    (cd "$folder/task" && env -i PATH="$PATH" HOME="$folder/home" CODEX_HOME="$folder/home" CI=1 \
        ANTHROPIC_BASE_URL="$url" ANTHROPIC_API_KEY=key ANTHROPIC_MODEL=agent \
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 timeout 100 "${@:2}" "Put new for old in note.txt." </dev/null) \
        >"$folder/out" 2>"$folder/err"
    check "$1 does its task" [ $? = 0 ]
    check "and answers" contains out 'It is done.'
    check "the file is edited" [ "$(cat "$folder/task/note.txt")" = new ]
}

# turns PATH: each after the first reads what is new: 95 % of its prompt, at least, are from the cache.
turns() {
    sed -nE "s@.* POST $1 200, \\S+: ([0-9]+) \\+ [0-9]+ tokens \\(([0-9]+) cached.*@\\1 \\2@p" "$folder/log" |
        awk 'NR > 1 && $2 < 0.95 * $1 { short = 1 } END { exit short || NR < 3 }'
}

# Claude Code and Codex CLI as they are. The name of the model is one whose tools Codex knows.
test_coding() {
    local site model=$folder/agent.gguf
    packages --no-deps claude-agent-sdk==0.2.189 openai-codex-cli-bin==0.163.0 || return
    site=$(echo "$folder"/venv/lib/python3*/site-packages)
    mkdir -p "$folder/home"
    start --ctx 65536
    task "Claude Code" "$site/claude_agent_sdk/_bundled/claude" --permission-mode acceptEdits -p
    cat >"$folder/home/config.toml" <<EOF
model = "gpt-5.5"
model_provider = "local"
[model_providers.local]
name = "local"
base_url = "$url/v1"
wire_api = "responses"
EOF
    task "Codex CLI" "$site/codex_cli_bin/bin/codex" exec --skip-git-repo-check --sandbox danger-full-access
    stop
    cp "$folder/log" "$folder/out"
    check "nothing of theirs is refused" lacks out ' [4-5][0-9][0-9], '
    check "Claude Code's second turn reads what is new" turns /v1/messages
    check "and Codex's, too" turns /v1/responses
}

lacks() { ! matches "$1" "$2"; }

! packages openai==3.57.0 anthropic==2.13.0 ollama==0.6.3 schemathesis==4.32.5 llm==0.36 prometheus-client==0.26.0 \
    'pydantic-ai-slim[openai,anthropic]==2.68.0' || test_packages
test_coding
[ "${PERIDOT_TEST_ALL:-}" ] || finish
test_agents
start --timeout 2
python "attacks on HTTP come to nothing" serve_attacks.py "$url" --pid $server --all
python "2,000 requests of 64 clients are answered as alone" serve_load.py "$url" --pid $server
stop
finish
