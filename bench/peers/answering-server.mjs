import { createServer } from 'node:http'
import process from 'node:process'

/**
 * `node answering-server.mjs PORT DEVICE-PORT ANSWER`: Node's bare server, which gives everybody the same answer: the
 * floor under whatever we answer ourselves. ANSWER is JSON: `status`, `fields` (names and values in turn), `body`.
 * No TypeScript, because what strips the types takes memory that a bare server does not.
 */
const [, , port, , answer = '{}'] = process.argv
const { status, fields, body } = JSON.parse(answer)
createServer((_req, res) => {
  res.writeHead(status, fields)
  res.end(body)
}).listen(Number(port), '127.0.0.1')
