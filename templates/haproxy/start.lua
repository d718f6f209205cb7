-- Written by headgate. Loaded by HAProxy before 2.8, which describes every listener and server to Lua at each start,
-- for scripts of which there are none. What it writes into these objects goes to one table that nobody reads: that
-- takes half the time and hardly any memory.
local registry = debug.getregistry()
for _, class in ipairs { 'Proxy', 'Listener', 'Server' } do
  local metatable = registry[class]
  if type(metatable) == 'table' then metatable.__newindex = {} end
end
