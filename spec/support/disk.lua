-- SPDX-License-Identifier: MIT
--
-- A small disk of its own for a test: full when it is filled, read-only when it is told to be.
-- Only root may mount one.

local fresh = require "spec.support.fresh"

local Disk = {}
Disk.__index = Disk

local function run(command)
    return (os.execute(command .. " >/dev/null 2>&1"))
end

--- Mounts a disk in the test's folder, which must be unmounted before the folder goes.
-- @tparam string size such as "4m"
-- @treturn ?table nil where this is not allowed
local function mount(size)
    local path = fresh.path "disk"
    run("mkdir " .. path)
    if not run(("mount -t tmpfs -o size=%s tmpfs %s"):format(size, path)) then
        return nil
    end
    return setmetatable({ path = path }, Disk)
end

--- Mounts a file over another one, which is made.
-- @treturn ?table nil where this is not allowed
local function mount_file(path, over)
    io.open(over, "w"):close()
    if not run(("mount --bind %s %s"):format(path, over)) then
        return nil
    end
    return setmetatable({ path = over }, Disk)
end

--- Leaves no page free.
function Disk:fill()
    run(("dd if=/dev/zero of=%s/filler bs=256k"):format(self.path))
    run(("dd if=/dev/zero of=%s/filler.rest bs=4k"):format(self.path))
end

--- Takes away what has filled it.
-- @tparam[opt] integer mib only so much of it
function Disk:free(mib)
    if mib then
        run(("truncate -s -%dM %s/filler"):format(mib, self.path))
    else
        run(("rm %s/filler*"):format(self.path))
    end
end

function Disk:make_read_only()
    assert(run("mount -o remount,ro " .. self.path))
end

function Disk:unmount()
    run("umount -l " .. self.path)
end

return { mount = mount, mount_file = mount_file }
