import { createServer } from 'node:http'
import process from 'node:process'

/** The device where nginx is missing: `node bench/node-device.ts PORT BODY` answers BODY to everything. */
const [, , port, body = ''] = process.argv
const server = createServer({ keepAliveTimeout: 3_600_000 }, (_req, res) => {
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
  res.end(body)
})
server.listen(Number(port), '127.0.0.1')
