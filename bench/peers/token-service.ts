import { createServer } from 'node:http'
import process from 'node:process'

/** `node token-service.ts PORT DEVICE-PORT TOKEN`: 204 for TOKEN, 401 for all others. */
const [, , port, , token = ''] = process.argv
const known = new Set([`Bearer ${token}`])
createServer({ keepAliveTimeout: 3_600_000 }, (req, res) => {
  res.writeHead(known.has(req.headers.authorization ?? '') ? 204 : 401)
  res.end()
}).listen(Number(port), '127.0.0.1')
