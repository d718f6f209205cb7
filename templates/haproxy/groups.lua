-- The path for a member with what the groups of a regular expression take of the client's, as agent/base/expression/groups.ts does it:
-- all instructions of a program are tried at once for each byte, so that no path of a client and no expression of an author can hold a
-- thread. What it costs counts among the steps of the request (routes.lua).

local keeper, take, textOfPath, encodedPath = headgate.keeper, headgate.take, headgate.textOfPath, headgate.encodedPath
-- To try an instruction costs so many steps.
local STEPS_PER_TRY = 4
-- Characters of programs.
local MAX_CHARACTERS = 1000000

local function setOf(ranges)
  local set = {}
  for from, to in ranges:gmatch('(%d+)%-?(%d*)') do
    for byte = tonumber(from), tonumber(to) or tonumber(from) do set[byte] = true end
  end
  return set
end

-- `~TEMPLATE INSTRUCTION INSTRUCTION...`, a row of path.
local parsed = keeper(function(text)
  local template, program = text:match('^~(%S*) (.*)$')
  local code = {}
  for kind, words in (program or ''):gmatch('(%S)(%S*)') do
    local one, other = words:match('^(%d+),?(%d*)$')
    local instruction = { kind = kind, one = tonumber(one), other = tonumber(other) }
    if kind == 'c' then instruction.set = setOf(words) end
    table.insert(code, instruction)
  end
  return { template = template or '', code = code }, #text
end, MAX_CHARACTERS)

local words = setOf('48-57,65-90,95,97-122')
local function isWord(text, at) return words[text:byte(at)] == true end

-- `at`: the place of the next byte.
local places = {
  ['^'] = function(_, at) return at == 1 end,
  ['$'] = function(text, at) return at == #text + 1 end,
  b = function(text, at) return (at > 1 and isWord(text, at - 1)) ~= isWord(text, at) end,
  B = function(text, at) return (at > 1 and isWord(text, at - 1)) == isWord(text, at) end,
}

-- To the instructions that take a byte. What comes after a match is preferred less, and left out.
local function follow(code, tries, place, slots, text, at)
  if tries.matched ~= nil or tries.seen[place] then return end
  tries.seen[place] = true
  tries.steps = tries.steps + STEPS_PER_TRY
  local instruction = code[place]
  if instruction == nil then return end
  local kind = instruction.kind
  if kind == 'c' then
    table.insert(tries, { place = place, slots = slots })
  elseif kind == 's' then
    follow(code, tries, instruction.one, slots, text, at)
    follow(code, tries, instruction.other, slots, text, at)
  elseif kind == 'j' then
    follow(code, tries, instruction.one, slots, text, at)
  elseif kind == 'g' then
    local noted = {}
    for slot, noticed in pairs(slots) do noted[slot] = noticed end
    noted[instruction.one] = at
    follow(code, tries, place + 1, noted, text, at)
  elseif kind == 'a' then
    follow(code, tries, place + 1, slots, text, #text + 1)
  elseif kind == 'm' then
    tries.matched = slots
  elseif places[kind](text, at) then
    follow(code, tries, place + 1, slots, text, at)
  end
end

-- Slot to place in the text; nil if the text does not match, or if it is not known.
local function slotsOf(code, text, request)
  local tries = { seen = {}, steps = 0 }
  follow(code, tries, 1, {}, text, 1)
  local matched = tries.matched
  for at = 1, #text do
    if not take(request, tries.steps) then return nil end
    if #tries == 0 then break end
    local byte = text:byte(at)
    local after = { seen = {}, steps = 0 }
    for _, thread in ipairs(tries) do
      if after.matched ~= nil then break end
      if code[thread.place].set[byte] then follow(code, after, thread.place + 1, thread.slots, text, at + 1) end
    end
    matched = after.matched or matched
    tries = after
  end
  return matched
end

-- `none` if there is none.
core.register_fetches('with_groups', function(txn)
  local request = { steps = txn:get_var('txn.steps') or 0 }
  local path = textOfPath(txn)
  local change = parsed(txn:get_var('txn.path_change') or '')
  local slots = slotsOf(change.code, path, request)
  txn:set_var('txn.steps', request.steps)
  if slots == nil then return 'none' end
  return (change.template:gsub('%$(%d)', function(number)
    local from, to = slots[2 * number], slots[2 * number + 1]
    return from ~= nil and to ~= nil and encodedPath(path:sub(from, to - 1)) or ''
  end))
end)
