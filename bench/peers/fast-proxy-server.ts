import { createServer } from 'node:http'
import process from 'node:process'
import fastProxy from 'fast-proxy'

const [, , port, devicePort] = process.argv
const { proxy } = fastProxy({
  base: `http://127.0.0.1:${devicePort}`,
  undici: { connections: 256, pipelining: 1 },
})
createServer((req, res) => proxy(req, res, req.url ?? '/', {})).listen(Number(port), '127.0.0.1')
