"""A model hub in one process: as much of Hugging Face's HTTP interface as publishing and fetching a run needs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_writer"
Files = dict[str, bytes]


class FakeHub(ThreadingHTTPServer):
    """Repositories as lists of commits, the newest last; only TOKEN may write, or see what is private."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repos: dict[str, list[Files]] = {}
        self.private: set[str] = set()
        self.sent: list[str] = []  # method and path of every request

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def commit(self, repo: str, files: Files) -> str:
        commits = self.repos[repo]
        commits.append({**(commits[-1] if commits else {}), **files})
        return self.sha(repo, len(commits) - 1)

    def sha(self, repo: str, number: int = -1) -> str:
        place = number % len(self.repos[repo])
        return hashlib.sha1(f"{repo} {place}".encode()).hexdigest()

    def at(self, repo: str, revision: str) -> tuple[str, Files] | None:
        found = {self.sha(repo, i): files for i, files in enumerate(self.repos[repo])}
        name = self.sha(repo) if revision == "main" else revision
        return (name, found[name]) if name in found else None


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.sent.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path):
            repo, what, revision = found.groups()
            self._about(repo, what, revision or "main")
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(*found.groups())
        else:
            self._refuse(404, "no such page")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.server.sent.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/api/validate-yaml":
            return self._answer({"errors": [], "warnings": []})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._refuse(401, "Invalid username or password.")
        if self.path == "/api/repos/create":
            return self._create(json.loads(body))
        if found := re.match(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/", self.path):
            return self._take(*found.groups(), body)
        return self._refuse(404, "no such page")

    def _create(self, asked: dict) -> None:
        repo = f"{asked.get('organization') or 'anna'}/{asked['name']}"
        if repo.startswith("others/"):
            return self._refuse(403, "You don't have the rights to create a model under this namespace")
        exists = repo in self.server.repos
        self.server.repos.setdefault(repo, [])
        if asked.get("private") or asked.get("visibility") == "private":
            self.server.private.add(repo)
        return self._answer({"url": f"{self.server.url}/{repo}", "name": repo}, 409 if exists else 200)

    def _take(self, repo: str, what: str, body: bytes) -> None:
        if what == "preupload":
            names = [file["path"] for file in json.loads(body)["files"]]
            files = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return self._answer({"files": files})
        lines = [json.loads(line) for line in body.splitlines()]
        added = {
            line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"
        }
        sha = self.server.commit(repo, added)
        return self._answer({"commitUrl": f"{self.server.url}/{repo}/commit/{sha}", "commitOid": sha, "success": True})

    def _visible(self, repo: str) -> bool:
        mine = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repo in self.server.repos and self.server.repos[repo] and (mine or repo not in self.server.private):
            return True
        self._refuse(401, "Repository not found", code="RepoNotFound")  # as the hub does, whether it is there or not
        return False

    def _found(self, repo: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """A commit and its files; None after a refusal."""
        if not self._visible(repo):
            return None
        found = self.server.at(repo, revision)
        if found is None:
            self._refuse(404, "Invalid rev id", code="RevisionNotFound")
        return found

    def _about(self, repo: str, what: str | None, revision: str) -> None:
        if (found := self._found(repo, revision)) is None:
            return
        sha, files = found
        if what == "tree":
            entries = [{"type": "file", "path": p, "size": len(c), "oid": _oid(c)} for p, c in files.items()]
            return self._answer(entries)
        siblings = [{"rfilename": name} for name in files]
        return self._answer({"id": repo, "modelId": repo, "sha": sha, "siblings": siblings, "tags": []})

    def _file(self, repo: str, revision: str, name: str) -> None:
        if (found := self._found(repo, revision)) is None:
            return
        sha, files = found
        if name not in files:
            return self._refuse(404, "Entry not found", code="EntryNotFound", commit=sha)
        self._send(files[name], 200, {"ETag": f'"{_oid(files[name])}"', "X-Repo-Commit": sha})

    def _answer(self, value: object, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), status, {"Content-Type": "application/json"})

    def _refuse(self, status: int, why: str, code: str = "", commit: str = "") -> None:
        headers = {"X-Error-Message": why, "X-Error-Code": code, "X-Repo-Commit": commit}
        self._send(json.dumps({"error": why}).encode(), status, {k: v for k, v in headers.items() if v})

    def _send(self, body: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _oid(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@contextmanager
def serving() -> Iterator[FakeHub]:
    """A hub that answers while the block runs."""
    with FakeHub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield hub
        hub.shutdown()
        thread.join()
