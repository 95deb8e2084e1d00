import { createServer } from 'node:http'
import process from 'node:process'

/**
 * `node fixed-response-server.mjs PORT RESPONSE`: a bare server of Node that sends every client the same response:
 * the minimum cost of a response that Postern generates. RESPONSE is JSON: `status`, `fields` (alternating names and values),
 * `body`. It is JavaScript, because type stripping needs memory.
 */
const [, , port, response = '{}'] = process.argv
const { status, fields, body } = JSON.parse(response)
createServer((_req, res) => {
  res.writeHead(status, fields)
  res.end(body)
}).listen(Number(port), '127.0.0.1')
