"""A model hub for test_command_pull.sh, which answers as huggingface.co does: hub.py FOLDER LOG [CERTIFICATE]. Listens
at a free port of 127.0.0.1, and at another one, where large files are, as the hub redirects to a host of its own for
them; with a certificate (and its key) by HTTPS at a third one; prints them. FOLDER/OWNER/NAME are the repositories;
files of 1000 bytes and more are large. Some names make trouble: gated, private, forbidden, renamed, busy, nonsense,
hostile, huge, vast, cut, wrong, long, slow, still, unranged, fewer, endless, astray, adrift, circular. LOG gets a line
for each request, but LOG.fewer those of that name."""
import hashlib, http.server, json, os, socketserver, ssl, sys, threading, time, urllib.parse

root, log_path = sys.argv[1], sys.argv[2]
COMMIT = {"main": "1" * 40, "refs/pr/1": "2" * 40}
ports = {}
busy = {}


def data_of(repo, path):
    with open(os.path.join(root, repo, path), "rb") as f:
        return f.read()


def etag_of(data):
    if len(data) >= 1000:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def tree_of(repo):
    rows = []
    for folder, folders, names in os.walk(os.path.join(root, repo)):
        below = os.path.relpath(folder, os.path.join(root, repo))
        for name in sorted(folders):
            path = os.path.normpath(os.path.join(below, name))
            rows.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": path})
        for name in names:
            path = os.path.normpath(os.path.join(below, name))
            data = data_of(repo, path)
            row = {"type": "file", "path": path, "size": len(data), "oid": etag_of(data)}
            if len(data) >= 1000:
                row["oid"] = "3" * 40
                row["lfs"] = {"oid": etag_of(data), "size": len(data), "pointerSize": 130}
            rows.append(row)
    rows.sort(key=lambda row: row["path"])
    if repo.endswith("/huge"):
        rows[0]["lfs"]["size"] = 10**16
    if repo.endswith("/vast"):
        for row in rows:
            row["lfs"]["size"] = 2**63
    if repo.endswith("/hostile"):
        for path in ("../../../escaped-Q5_0.gguf", "/escaped-Q4_0.gguf", "a/../../escaped-Q4_1.gguf", "a//b-Q5_1.gguf",
                     ".."):
            rows.append({"type": "file", "path": path, "size": 2, "oid": etag_of(b"{}")})
        rows.append({"type": "file", "path": "short.json", "size": 2, "oid": "../../../../escaped"})
        rows.append({"type": "file", "path": ["list.json"], "size": -2})
    return rows


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, place):
        words = [place, self.command, self.path, self.headers.get("Range", "-"), self.headers.get("Authorization", "-")]
        with open(log_path + (".fewer" if "/fewer/" in self.path else ""), "a") as f:
            f.write(" ".join(words) + "\n")

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_in_pieces(self, body, **headers):
        """The client sees each chunk by itself."""
        self.send_response(200)
        for name, value in {"Transfer-Encoding": "chunked", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        for piece in (body[:len(body) // 2], body[len(body) // 2:], b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def answer_for_ever(self, status, **headers):
        """Until the client has enough."""
        self.send_response(status)
        for name, value in {"Transfer-Encoding": "chunked", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        while True:
            self.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")

    def refuse(self, status, code, message=""):
        self.answer(status, b"<html>no</html>", X_Error_Code=code, X_Error_Message=message)

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        self.note("hub")
        self.answer(404)

    def may(self, repo, of_file):
        """False after an answer that refuses."""
        token = self.headers.get("Authorization", "")
        if token and token not in ("Bearer good", "Bearer other"):
            self.answer(401, b"", X_Error_Message="Invalid credentials in Authorization header")
        elif repo.endswith("/gated") and of_file and not token:
            self.refuse(401, "GatedRepo", "Access to model is restricted")
        elif repo.endswith("/gated") and of_file and token != "Bearer good":
            self.refuse(403, "GatedRepo", "Access to model is restricted")
        elif repo.endswith("/endless"):
            self.answer_for_ever(403, X_Error_Message="There is more to say.")
        elif repo.endswith("/forbidden"):
            self.refuse(403, "", "Access to this resource is disabled.\x1b[31m")
        elif not os.path.isdir(os.path.join(root, repo)) or repo.endswith("/private"):
            self.refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        else:
            return True
        return False

    def do_GET(self):
        self.note("hub")
        url = urllib.parse.urlsplit(self.path)
        words = [urllib.parse.unquote(word) for word in url.path.split("/")[1:]]
        query = urllib.parse.parse_qs(url.query)
        if "/renamed" in self.path:
            return self.answer(307, Location=self.path.replace("/renamed", "/directory"))
        if "/busy" in self.path and not busy.get(self.path):
            busy[self.path] = True
            return self.answer(503)
        if words[:2] == ["api", "models"] and len(words) >= 4:
            return self.api("/".join(words[2:4]), words[4:], query)
        if len(words) > 4 and words[2] == "resolve":
            return self.resolve("/".join(words[:2]), words[3], "/".join(words[4:]))
        self.answer(404)

    def api(self, repo, words, query):
        if not self.may(repo, False):
            return
        if not words:
            words = ["revision", "main"]
        commit = COMMIT.get(words[1], words[1] if words[1] in COMMIT.values() else None)
        if not commit:
            return self.refuse(404, "RevisionNotFound", "Invalid rev id")
        if words[0] == "revision":
            siblings = [{"rfilename": row["path"]} for row in tree_of(repo) if row["type"] == "file"]
            text = json.dumps({"id": repo, "modelId": repo, "sha": commit, "private": False, "siblings": siblings,
                               "tags": []})
            if repo.endswith("/nonsense"):
                text = "<html>"
            return self.answer(200, text.encode(), Content_Type="application/json")
        begin, rows = int(query.get("cursor", ["0"])[0]), tree_of(repo)
        headers = {"Content_Type": "application/json"}
        if begin + 4 < len(rows):
            headers["Link"] = '<http://127.0.0.1:%d%s?recursive=true&cursor=%d>; rel="next"' % (
                ports["hub"], self.path.split("?")[0], begin + 4)
        if repo.endswith("/adrift"):
            headers["Link"] = '<http://127.0.0.1:%d/ no address>; rel="next"' % ports["hub"]
        if repo.endswith("/circular"):
            headers["Link"] = '<http://127.0.0.1:%d%s>; rel="next"' % (ports["hub"], self.path)
            rows = []
        self.answer_in_pieces(json.dumps(rows[begin:begin + 4]).encode(), **headers)

    def resolve(self, repo, revision, path):
        if not self.may(repo, True):
            return
        try:
            data = data_of(repo, path)
        except OSError:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        commit = COMMIT.get(revision, revision)
        if len(data) < 1000:
            return self.answer(200, data, ETag='"%s"' % etag_of(data), X_Repo_Commit=commit)
        place = "http://127.0.0.1:%d/%s/%s" % (ports["store"], repo, urllib.parse.quote(path))
        if repo.endswith("/astray"):
            return self.answer_for_ever(302, Location=place)
        self.answer(302, b"Found", Location=place, X_Repo_Commit=commit, X_Linked_Size=str(len(data)),
                    X_Linked_ETag='"%s"' % etag_of(data), ETag='"%s"' % etag_of(data))


class Store(Hub):
    def do_GET(self):
        self.note("store")
        words = urllib.parse.unquote(self.path).split("/")
        repo, name, data = "/".join(words[1:3]), words[2], data_of("/".join(words[1:3]), "/".join(words[3:]))
        begin = int(self.headers["Range"][6:].split("-")[0]) if "Range" in self.headers and name != "unranged" else 0
        if name == "wrong":
            data = data[:-1] + bytes([data[-1] ^ 1])
        elif name == "long":
            data += b"more"
        if begin >= len(data):
            return self.answer(416)
        if name == "fewer":   # never all, and now more, now less of it
            busy[name] = busy.get(name, 0) + 1
            begin, sent = 0, len(data) // 2 + busy[name] % 2 * 50000
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (begin, len(data) - 1, len(data)))
        self.send_header("Content-Length", str(len(data) - begin))
        self.send_header("ETag", '"%s"' % etag_of(data))
        self.end_headers()
        if self.command == "HEAD":
            return
        if name == "fewer":
            self.wfile.write(data[:sent])
            self.wfile.flush()
            return self.connection.shutdown(2)
        if name in ("cut", "unranged"):
            if name == "cut" or not busy.get(self.path):
                busy[self.path] = True
                self.wfile.write(data[begin:begin + len(data) // 3])
                self.wfile.flush()
                return self.connection.shutdown(2)
        if name == "still":
            time.sleep(2.2)
        while name == "slow" and begin < len(data):
            self.wfile.write(data[begin:begin + len(data) // 10 + 1])
            begin += len(data) // 10 + 1
            time.sleep(0.05)
        self.wfile.write(data[begin:])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        pass   # clients that go away are a part of the tests


servers = {"hub": Server(("127.0.0.1", 0), Hub), "store": Server(("127.0.0.1", 0), Store)}
for place, server in servers.items():
    ports[place] = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
if len(sys.argv) > 3:   # a certificate and its key: the hub by HTTPS, too
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    secure = Server(("127.0.0.1", 0), Hub)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    ports["secure"] = secure.server_address[1]
    threading.Thread(target=secure.serve_forever, daemon=True).start()
print(*ports.values(), flush=True)
sys.stdin.read()   # the end of the test's input ends the server
