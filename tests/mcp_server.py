"""A server of the Model Context Protocol for test_command_tools.sh: mcp_server.py stdio|http LOG [MODE]...
On HTTP it listens at a free port of 127.0.0.1 and prints it: /mcp answers with events, /json with JSON, /moved and
/away redirect, /private wants the header X-Key, /broken answers nonsense. LOG gets a line for what a client is to do.
Modes: stateless knows revision 2026-07-28 alone, old the version 2024-11-05, odd one that nobody knows, empty has no
tools, silent never answers, endless has a list of tools without an end, heavy one of 100 pages of a megabyte, slow one
of 100 pages of a second, mute does not say that its tools may change, deaf ends by no signal that it can ignore,
image:FILE shows that file with a sum."""
import base64, http.server, json, os, signal, sys, threading, time

transport, log_path, modes = sys.argv[1], sys.argv[2], sys.argv[3:]
STATELESS = "2026-07-28"
lock = threading.Lock()
sessions = {}
cancelled = threading.Event()
replies = []
extra = []


def log(*words):
    with open(log_path, "a") as f:
        print(*words, file=f)


def schema(**properties):
    return {"type": "object", "properties": properties}


TOOLS = [
    {"name": "echo", "description": "Gives the arguments back.\nSecond line", "inputSchema": schema(
        text={"type": "string", "x-mcp-header": "Text"},
        deep=schema(n={"type": "integer", "x-mcp-header": "N"}, yes={"type": "boolean", "x-mcp-header": "Yes"}))},
    {"name": "dotted.name", "description": "A \x1b[31mred\x1b[0m name"},
    {"name": "x" * 100},
    {"name": "x" * 99 + "y"},
    {"name": ""},
    {"name": "list", "inputSchema": []},
    {"inputSchema": {}},
    {"name": "header", "inputSchema": {"anyOf": [schema(a={"type": "string", "x-mcp-header": "A"})]}},
    {"name": "upper"},
    {"name": "add", "inputSchema": {**schema(a={"type": "integer"}, b={"type": "integer"}), "required": ["a", "b"]}},
] + [{"name": name} for name in (
    "structured", "mixed", "fails", "error", "hang", "huge", "flood", "garbage", "dies", "asks", "more", "same",
    "input", "leaves", "forget")]


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def mixed():
    return {"content": [
        {"type": "text", "text": "one"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a\x1b[2J"},
        {"type": "resource", "resource": {"uri": "b:c", "text": "two"}},
        {"type": "resource", "resource": {"uri": "b:d", "blob": "AAAA"}}, {"type": "strange"}, 7,
        {"type": "text", "text": "thr\u00e9\u0000e"}]}


def call(params, send, session):
    """The result of tools/call, or an Exception for an error of JSON-RPC."""
    name, arguments = params.get("name"), params.get("arguments")
    if name in ("echo", "dotted.name", "upper", "late") or name.startswith("xxx"):
        return text(json.dumps([name, arguments], ensure_ascii=False))
    if name == "add":
        shown = [{"type": "image", "mimeType": "image/png", "data": base64.b64encode(open(m[6:], "rb").read()).decode()}
                 for m in modes if m.startswith("image:")]
        return {"content": text(str(arguments["a"] + arguments["b"]))["content"] + shown}
    if name == "structured":
        return {"content": [], "structuredContent": {"a": [1, 2.5, None]}}
    if name == "mixed":
        return mixed()
    if name == "fails":
        return {**text("it went wrong"), "isError": True}
    if name == "hang":
        cancelled.clear()
        cancelled.wait(60)
        return text("late")
    if name == "huge":
        return text("h\u00e9" * 100000)
    if name == "flood":
        send("x" * (9 << 20) if transport == "stdio" else '"' + "x" * (9 << 20) + '"')
        return text("flooded")
    if name == "garbage":
        for line in ("hello!", "", "[" * 100000, '{"jsonrpc":"2.0","id":"1","result":{}}', '{"id":999,"result":{}}',
                     "null", '{"method":7}', "\u00ff\ufffe",
                     '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\u001b[31m"}}'):
            send(line)
        return text("tidy")
    if name == "dies":
        print("first line\nthe \x1b[31mlast words", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "asks":
        send(json.dumps({"jsonrpc": "2.0", "id": "p-1", "method": "ping"}))
        send(json.dumps({"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {}}))
        for _ in range(100):
            if len(replies) >= 2:
                break
            time.sleep(0.05)
        return text(json.dumps(replies))
    if name == "more":
        extra[:] = [{"name": "late"}, {"name": "echo2", "description": arguments.get("is", "")}]
        send(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        return text("there is more")
    if name == "same":
        send(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        return text("nothing")
    if name == "input":
        return {"resultType": "input_required", "inputRequests": {}}
    if name == "leaves":
        threading.Timer(0.05, os._exit, (0,)).start()
        return text("bye")
    if name == "forget":
        sessions.clear()
        return text("forgotten")
    raise ValueError("no \x1b[31msuch tool")


def list_tools(params):
    """Pages of five."""
    if "heavy" in modes or "slow" in modes:
        log("lists")
        time.sleep("slow" in modes)
        n = int(params.get("cursor", "0")) + 1
        tool = {"name": f"tool{n}", "description": "x" * (1 << 20 if "heavy" in modes else 1)}
        return {"tools": [tool], **({"nextCursor": str(n)} if n < 100 else {})}
    tools = TOOLS + extra
    at = int(params.get("cursor", "0"))
    result = {"tools": tools[at:at + 5]}
    if at + 5 < len(tools) or "endless" in modes:
        result["nextCursor"] = str(at + 5 if "endless" not in modes else 0)
    return result


def answer(message, send, session=None):
    """The response to a message; None: it has none."""
    method, params = message.get("method"), message.get("params") or {}
    if method is None:
        replies.append(message)
        return None
    if "id" not in message:
        log(method, json.dumps(params))
        if method == "notifications/cancelled":
            cancelled.set()
        return None
    if "silent" in modes:
        return None
    response = {"jsonrpc": "2.0", "id": message["id"]}
    capabilities = {} if "empty" in modes else {"tools": {"listChanged": "mute" not in modes}}
    meta = params.get("_meta", {})
    if "stateless" in modes and (meta.get("io.modelcontextprotocol/protocolVersion") != STATELESS or
                                 "io.modelcontextprotocol/clientCapabilities" not in meta):
        return {**response, "error": {"code": -32602, "message": "no version"}}
    if method == "initialize":
        version = "2024-11-05" if "old" in modes else "1999-01-01" if "odd" in modes else params["protocolVersion"]
        response["result"] = {"protocolVersion": version, "capabilities": capabilities,
                              "serverInfo": {"name": "test", "version": "1"}}
    elif method == "server/discover" and "stateless" in modes:
        response["result"] = {"supportedVersions": [STATELESS], "capabilities": capabilities, "resultType": "complete"}
    elif method == "tools/list":
        response["result"] = list_tools(params)
    elif method == "tools/call":
        try:
            response["result"] = call(params, send, session)
        except ValueError as error:
            response["error"] = {"code": -32602, "message": str(error)}
    else:
        response["error"] = {"code": -32601, "message": f"unknown method {method}"}
    return response


# ---- standard streams ----

def send_line(line):
    with lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def serve_line(line):
    response = answer(json.loads(line), send_line)
    if response and not (cancelled.is_set() and '"hang"' in line):
        send_line(json.dumps(response))


def serve_stdio():
    if "deaf" in modes:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log("begins", os.getcwd(), os.environ.get("TEST_VALUE", "-"), *sys.argv[3:])
    print("a greeting", flush=True)
    for line in sys.stdin:
        if '"id"' not in line or '"method"' not in line:
            serve_line(line)
        else:   # while it is at work others may come
            threading.Thread(target=serve_line, args=(line,), daemon=True).start()
    log("ends")
    while "deaf" in modes:
        time.sleep(1)


# ---- HTTP ----

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def send_chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def send_event(self, line):
        """Its lines end in every way there is, and it comes in pieces."""
        begin = '{"jsonrpc": "2.0",'
        if line.startswith(begin):
            line = begin + "\r\ndata:" + line[len(begin):]
        data = b": comment\nevent: message\r\nid: 7\rdata: " + line.encode() + b"\r\n\r\n"
        if len(data) > 2000:
            self.send_chunk(data)
        for i in range(0, len(data) if len(data) <= 2000 else 0, 7):
            self.send_chunk(data[i:i + 7])

    def check_headers(self, message):
        """Of a stateless request; gives what is wrong."""
        def header(name):
            value = self.headers.get(name, "-")
            if value.startswith("=?base64?"):
                value = base64.b64decode(value[9:-2]).decode()
            return value
        if "stateless" not in modes or self.headers.get("MCP-Protocol-Version") != STATELESS:
            return "version" if "stateless" in modes else None
        params = message.get("params", {})
        wanted = {"Mcp-Method": message["method"]}
        if message["method"] == "tools/call":
            wanted["Mcp-Name"] = params["name"]
            arguments = params["arguments"]
            if "text" in arguments:
                wanted["Mcp-Param-Text"] = arguments["text"]
            for key, name in (("n", "Mcp-Param-N"), ("yes", "Mcp-Param-Yes")):
                if key in arguments.get("deep", {}):
                    wanted[name] = json.dumps(arguments["deep"][key])
        for name, value in wanted.items():
            if header(name) != value:
                return f"{name}: {header(name)}, not {value}"
        return None

    def do_DELETE(self):
        log("DELETE", self.headers.get("Mcp-Session-Id", "-") in sessions, self.headers.get("MCP-Protocol-Version"))
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        log("POST", self.path, message.get("method", "reply"), self.headers.get("MCP-Protocol-Version", "-"),
            self.headers.get("X-Key", "-"), self.client_address[1])
        assert "application/json" in self.headers["Accept"] and "text/event-stream" in self.headers["Accept"]
        if self.path == "/moved":
            return self.reply(307, Location="/json")
        if self.path == "/away":
            return self.reply(307, Location="http://localhost:1/json")
        if self.path == "/private" and self.headers.get("X-Key") != "open sesame":
            return self.reply(401, b"no \x1b[31mway")
        if self.path == "/broken":
            return self.reply(200, b"{" * 1000, Content_Type="application/json")
        if self.path == "/nothing":
            return self.reply(404, b"no such page")
        wrong = self.check_headers(message)
        if wrong:
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32020, "message": wrong}}
            return self.reply(400, json.dumps(error).encode(), Content_Type="application/json")
        session = self.headers.get("Mcp-Session-Id")
        begins = message.get("method") == "initialize"
        if not begins and "stateless" not in modes and session not in sessions:
            return self.reply(404)
        if "id" not in message or "method" not in message:
            answer(message, None)
            return self.reply(202)
        headers = {}
        if begins and "stateless" not in modes:
            headers["Mcp_Session_Id"] = f"session-{len(sessions)}-{time.time()}"
            sessions[headers["Mcp_Session_Id"]] = True
        self.respond(message, headers)

    def respond(self, message, headers):
        if self.path != "/mcp":
            response = answer(message, [].append)
            body = json.dumps(response).encode()
            return self.reply(200, body, Content_Type="application/json; charset=utf-8", **headers)
        self.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        try:
            response = answer(message, self.send_event)
            if response:
                self.send_event(json.dumps(response))
            self.send_chunk(b"")
        except OSError:
            log("gone", message["method"])
            self.close_connection = True


if transport == "stdio":
    serve_stdio()
else:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
