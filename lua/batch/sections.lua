-- SPDX-License-Identifier: MIT

--- The table of fields: everything that can be configured. The check of what is given to
-- `batch.new`, configuration files, `--print-config` and the documentation all come from here.

local version = require "batch.version"

-- Sections by name, each a list of fields in the order in which they are documented. A field has
-- name, type, default (as one would write it; none: nil, or it is_required), sentence, and by type
-- min and max (of a size or a duration: max as text, or neither; of a line: max bytes), values, or
-- the section that it holds. A required one has an example, for the file that shows all fields.
-- Where Lua and files differ: only ("lua" or "file"), file_type, and is_lenient (an unreadable text
-- means the default, as it does for every duration).
local sections = {}

-- What stands at the top of a configuration file.
sections.file = {
    { name = "batch", type = "section", section = "batch",
      sentence = "the runner; on with these defaults even without this block" },
    { name = "server", type = "section", section = "server",
      sentence = "the HTTP server" },
    { name = "auth", type = "section", section = "auth",
      sentence = "who may call the server; without any token: loopback only" },
    { name = "log", type = "section", section = "log",
      sentence = "what is written to standard error" },
    { name = "fetch", type = "section", section = "fetch",
      sentence = "the built-in pipeline" },
}

sections.batch = {
    { name = "disabled", type = "boolean", default = false, only = "file",
      sentence = "true: no store is opened and the endpoints answer 503" },
    { name = "store", type = "store", default = "batch.db", file_type = "name",
      sentence = "the path of the store's file, or \":memory:\"" },
    { name = "fetch", type = "fetch", default = "batch.fetch", file_type = "name",
      sentence = "the module that fetches a target" },
    { name = "executor", type = "choice", default = "threads", values = { "threads", "manual" },
      sentence = "whether worker threads run fetch, or the program takes work itself" },
    { name = "workers", type = "integer", default = 1, min = 1, max = 256,
      sentence = "worker threads" },
    { name = "targets_per_job", type = "integer", default = 32, min = 1, max = 10000000,
      sentence = "targets that one job may have" },
    { name = "jobs_per_caller", type = "integer", default = 1, min = 1, max = 1000000,
      sentence = "live jobs that one caller may have" },
    { name = "jobs_total", type = "integer", default = 8, min = 1, max = 1000000,
      sentence = "live jobs in all" },
    { name = "ttl", type = "duration", default = "24h",
      sentence = "how long a job lives after its last read or write" },
    { name = "max_bytes", type = "size", default = "64MiB", is_lenient = true,
      sentence = "all stored results together; above it the oldest finished jobs go" },
    -- A row of SQLite's holds 10^9 bytes: an outcome above that could never be stored.
    { name = "max_result_bytes", type = "size", default = "8MiB", max = "900MiB",
      sentence = "one result; a target with a larger one fails" },
    { name = "retry_wait", type = "duration", default = "1s",
      sentence = "how long a busy target waits before it is tried again" },
    { name = "retry_for", type = "duration", default = "1m",
      sentence = "how long a target may come back busy before it fails" },
    { name = "target_timeout", type = "duration", default = "5m",
      sentence = "one call of fetch" },
    { name = "durability", type = "choice", default = "full", values = { "full", "normal" },
      sentence = "whether an outcome survives a power cut, or only a crash of the process" },
    { name = "on_restart", type = "choice", default = "fail", values = { "fail", "resume" },
      sentence = "what becomes of the jobs of a dead process" },
    { name = "crash_limit", type = "integer", default = 10, min = 1, max = 1000,
      sentence = "deaths of its process after which a resumed target fails" },
    { name = "hooks", type = "section", section = "hooks", only = "lua",
      sentence = "functions that poll() calls" },
    { name = "log", type = "function", only = "lua",
      sentence = "called by poll() with level, message and fields; else stderr is written to" },
}

sections.hooks = {
    { name = "depth", type = "function", only = "lua",
      sentence = "gets the number of live jobs when it changes" },
    { name = "inflight", type = "function", only = "lua",
      sentence = "gets the number of targets being fetched when it changes" },
    { name = "target", type = "function", only = "lua",
      sentence = "gets error or nil, seconds, bytes and info of each outcome" },
    { name = "job", type = "function", only = "lua",
      sentence = "gets status and info of each job that ends" },
    { name = "job_seconds", type = "function", only = "lua",
      sentence = "gets seconds and info of each job that ends uncancelled" },
}

sections.server = {
    { name = "listen", type = "listen", default = "127.0.0.1:8080",
      sentence = "address and port, or \"unix:/run/batch.sock\"" },
    { name = "tls_certificate", type = "string", default = "",
      sentence = "a PEM file; both or neither" },
    { name = "tls_key", type = "string", default = "",
      sentence = "a PEM file; both or neither" },
    { name = "max_body", type = "size", default = "1MiB",
      sentence = "the body of one request" },
    { name = "shutdown_grace", type = "duration", default = "30s",
      sentence = "how long a shutdown waits for what is being fetched" },
}

sections.auth = {
    { name = "token", type = "list", section = "auth.token",
      sentence = "a caller and the token that it sends; as many as there are" },
}

sections["auth.token"] = {
    { name = "caller", type = "name", is_required = true, example = "alice",
      sentence = "the caller's name" },
    { name = "class", type = "string", default = "",
      sentence = "the class of the caller's jobs" },
    { name = "sha256", type = "sha256", is_required = true, example = "…",
      sentence = "the SHA-256 of the token: printf %s \"$TOKEN\" | sha256sum" },
}

sections.log = {
    { name = "level", type = "choice", default = "info",
      values = { "debug", "info", "warn", "error" },
      sentence = "the least level that is written" },
    { name = "format", type = "choice", default = "logfmt", values = { "logfmt", "json" },
      sentence = "how a line is written" },
}

sections.fetch = {
    { name = "allow", type = "networks", default = {},
      sentence = "networks that the guard lets through; by default only public addresses" },
    { name = "deny", type = "networks", default = {},
      sentence = "networks that it refuses; wins over allow" },
    { name = "timeout", type = "duration", default = "30s", max = "24h",
      sentence = "one request" },
    { name = "connect_timeout", type = "duration", default = "10s", max = "24h",
      sentence = "one attempt to connect" },
    { name = "max_body", type = "size", default = "16MiB", max = "1GiB",
      sentence = "a body after decompression; a larger one is an error" },
    { name = "max_redirects", type = "integer", default = 5, min = 1, max = 100,
      sentence = "redirects that one request follows" },
    { name = "attempts", type = "integer", default = 3, min = 1, max = 100,
      sentence = "tries, for connection errors and the statuses 408, 500, 502, 504" },
    { name = "per_host", type = "integer", default = 2, min = 1, max = 1000,
      sentence = "requests at once to one host, over all workers" },
    { name = "per_host_delay", type = "duration", default = "0s",
      sentence = "the pause between two requests to one host" },
    { name = "user_agent", type = "line", default = "luabatch/" .. version, max = 255,
      sentence = "how requests introduce themselves" },
    { name = "archive", type = "url", default = "https://web.archive.org/web/2id_/",
      sentence = "where `recover` finds archived copies" },
    { name = "llm", type = "section", section = "fetch.llm",
      sentence = "the language model that answers `question`" },
}

sections["fetch.llm"] = {
    { name = "url", type = "url", default = "",
      sentence = "an OpenAI-compatible endpoint, up to \"/v1\"; empty: no questions" },
    { name = "model", type = "string", default = "",
      sentence = "the model's name" },
    { name = "api_key_env", type = "string", default = "",
      sentence = "the environment variable that holds the key" },
    { name = "timeout", type = "duration", default = "2m",
      sentence = "one question" },
    { name = "max_input", type = "size", default = "256KiB",
      sentence = "the part of a content that the model is shown" },
}

return sections
