-- SPDX-License-Identifier: MIT
--
-- What is to be reached: numbers are ratios to what is measured beside the product, and a mark in
-- the plot; texts are figures of their own. Goals are printed, never asserted.

return {
    drain = { ["1 × 1"] = 0.9, ["1 × 8"] = 0.8, ["8 × 8"] = 0.8, ["64 × 64"] = 0.7 },
    submit = { [32] = 0.8 }, -- by targets, one thread, without a check
    start = "100 µs",
    depth = 0.95,
    stored = 0.95,
    queued_target = "0",
    live_job = "1 024",
    many_rate = "0.95",
    many_core = "20 %",
    http_get = 0.5,
    http_post = { normal = "5 000/s", full = "3 000/s" },
    stream = "64",
    html = "20 000",
    pages = "1 000 ms",
    pages_memory = "no growth",
    nginx_status = { [1] = 0.5 }, -- by targets
    nginx_drain = 0.6,
}
