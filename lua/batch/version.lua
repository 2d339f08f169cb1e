-- SPDX-License-Identifier: MIT

--- The version, for `batch._VERSION`, `luabatch --version` and the User-Agent.

return "0.1.0"
