-- Each request names another client or carries another token: `clients COUNT FIRST`, or `tokens FILE`.
dofile(debug.getinfo(1, 'S').source:sub(2):match('(.*/)') .. 'report.lua')

local head, values, count, nth

function init(args)
  head = wrk.format('GET', wrk.path):sub(1, -3)
  if args[1] == 'clients' then
    count, nth = tonumber(args[2]), tonumber(args[3])
  else
    values = {}
    for line in io.lines(args[2]) do values[#values + 1] = line end
    count, nth = #values, 0
  end
end

function request()
  local i = nth % count
  nth = nth + 1
  if values then return head .. 'Authorization: Bearer ' .. values[i + 1] .. '\r\n\r\n' end
  local c, b, a = i % 256, math.floor(i / 256) % 256, math.floor(i / 65536)
  return head .. 'X-Forwarded-For: 10.' .. a .. '.' .. b .. '.' .. c .. '\r\n\r\n'
end
