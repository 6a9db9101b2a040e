-- Dissects frames that "obstacle trace export --format pcapng" has written:
--   tshark -X lua_script:p2psap.lua -r t.pcapng
-- No header is fixed here. The file begins with the layout of every session's header in every epoch, and each frame names
-- its layout. The names below are those of fields that filters can use, such as p2psap.sequenced.number == 17. Every other
-- field is a text of p2psap.field.

local p2psap = Proto("p2psap", "P2PSAP")

local names = {
  "session.version", "session.epoch", "session.run", "session.session",
  "transport.source", "transport.destination",
  "resize.offset", "resize.total",
  "synchronous.tag", "synchronous.label", "synchronous.stored", "synchronous.granted",
  "asynchronous.tag", "asynchronous.label",
  "sequenced.number",
  "ack.flags", "ack.next", "ack.seen", "ack.credit",
  "retransmit.copy", "negative.first", "negative.count",
  "dccp.flags", "dccp.ratio", "dccp.number", "dccp.highest", "dccp.seen", "dccp.elapsed",
}

local f = {
  kind = ProtoField.uint8("p2psap.pdu", "PDU", base.DEC, { [0] = "layout", [1] = "frame" }),
  layout = ProtoField.uint16("p2psap.layout", "Layout"),
  direction = ProtoField.uint8("p2psap.direction", "Direction", base.DEC, { [0] = "out", [1] = "in" }),
  segments = ProtoField.uint16("p2psap.segments", "Segments of the train"),
  bytes = ProtoField.uint32("p2psap.bytes", "Bytes of the train"),
  epoch = ProtoField.uint8("p2psap.epoch", "Epoch"),
  node = ProtoField.string("p2psap.node", "Node"),
  peer = ProtoField.string("p2psap.peer", "Peer"),
  session = ProtoField.string("p2psap.session", "Session"),
  column = ProtoField.string("p2psap.column", "Composition"),
  network = ProtoField.string("p2psap.network", "Network"),
  field = ProtoField.string("p2psap.field", "Field"),
  payload = ProtoField.bytes("p2psap.payload", "Payload"),
}
local known = {}
for _, name in ipairs(names) do
  known[name] = ProtoField.uint64("p2psap." .. name, name)
end

local registered = {}
for _, field in pairs(f) do registered[#registered + 1] = field end
for _, field in pairs(known) do registered[#registered + 1] = field end
p2psap.fields = registered

local layouts = {}
function p2psap.init() layouts = {} end

-- short reads a text behind a byte with its length, and returns it with the offset after it.
local function short(buffer, at)
  local n = buffer(at, 1):uint()
  if n == 0 then return "", at + 1 end
  return buffer(at + 1, n):string(), at + 1 + n
end

local function read_layout(buffer, pinfo, tree)
  local l = { fields = {}, epoch = buffer(3, 1):uint() }
  local id, at = buffer(1, 2):uint(), 4
  for _, name in ipairs({ "node", "peer", "session", "column", "network" }) do
    l[name], at = short(buffer, at)
    tree:add(f[name], l[name])
  end
  l.header = buffer(at, 2):uint()
  local count = buffer(at + 2, 1):uint()
  at = at + 3
  for _ = 1, count do
    local from, x = at, {}
    x.protocol, at = short(buffer, at)
    x.name, at = short(buffer, at)
    x.offset, x.length = buffer(at, 2):uint(), buffer(at + 2, 2):uint()
    at = at + 4
    l.fields[#l.fields + 1] = x
    tree:add(f.field, buffer(from, at - from),
      string.format("%s of %s: %d bytes at %d", x.name, x.protocol, x.length, x.offset))
  end
  layouts[id] = l
  pinfo.cols.info = string.format("layout of %s between %s and %s in epoch %d: %s over %s", l.session, l.node, l.peer,
    l.epoch, l.column, l.network)
end

-- add adds a field of a header.
local function add(tree, x, range)
  local name = x.name ~= "" and x.name or x.protocol
  if x.length <= 8 and known[name] then
    tree:add(known[name], range)
  elseif x.length <= 8 then
    tree:add(f.field, range, string.format("%s=%s", name, tostring(range:uint64())))
  else
    tree:add(f.field, range, string.format("%s=%s", name, tostring(range:bytes())))
  end
end

local function read_frame(buffer, pinfo, tree)
  local id = buffer(1, 2):uint()
  local l = layouts[id]
  tree:add(f.direction, buffer(3, 1))
  tree:add(f.segments, buffer(4, 2))
  tree:add(f.bytes, buffer(6, 4))
  if not l then
    tree:add_expert_info(PI_UNDECODED, PI_WARN, "the layout of this frame is not in the file")
    return
  end
  local out = buffer(3, 1):uint() == 0
  pinfo.cols.src = out and l.node or l.peer
  pinfo.cols.dst = out and l.peer or l.node
  for _, name in ipairs({ "node", "peer", "session", "column", "network" }) do
    tree:add(f[name], l[name]):set_generated()
  end
  tree:add(f.epoch, l.epoch):set_generated()
  local frame, number = buffer(10):tvb(), nil
  local by, of = {}, nil
  for _, x in ipairs(l.fields) do
    if x.length > 0 and x.offset + x.length <= frame:len() then
      if of ~= x.protocol then
        by[x.protocol] = by[x.protocol] or tree:add(p2psap, frame(x.offset, x.length), x.protocol)
        of = x.protocol
      end
      add(by[x.protocol], x, frame(x.offset, x.length))
      if x.name:match("%.number$") then number = frame(x.offset, x.length):uint64() end
    end
  end
  if frame:len() > l.header then
    tree:add(f.payload, frame(l.header))
  end
  local times = buffer(4, 2):uint()
  pinfo.cols.info = string.format("%s%s%s, %d bytes", l.session, number and " #" .. tostring(number) or "",
    times > 1 and " ×" .. times or "", buffer(6, 4):uint())
end

function p2psap.dissector(buffer, pinfo, root)
  pinfo.cols.protocol = "P2PSAP"
  local tree = root:add(p2psap, buffer())
  tree:add(f.kind, buffer(0, 1))
  tree:add(f.layout, buffer(1, 2))
  if buffer(0, 1):uint() == 0 then
    read_layout(buffer, pinfo, tree)
  else
    read_frame(buffer, pinfo, tree)
  end
  return buffer:len()
end
