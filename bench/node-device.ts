import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import process from 'node:process'

/**
 * `node bench/node-device.ts PORT BODY`: a device that responds with BODY, except to
 * - `/bytes/N`: N bytes;
 * - POST: the size of the request body, after all of it has arrived;
 * - `/seen`: the number of requests, without those for `/seen`.
 */
const [, , port, body = ''] = process.argv
const PIECE = Buffer.alloc(256 * 1024, 'x')
let seen = 0

const server = createServer({ keepAliveTimeout: 3_600_000, requestTimeout: 0 }, (req, res) => {
  if (req.url === '/seen') {
    respond(res, String(seen))
    return
  }
  seen += 1
  const size = /^\/bytes\/(\d+)$/.exec(req.url ?? '')?.[1]
  if (req.method === 'POST') respondWithSize(req, res)
  else if (size !== undefined) sendBytes(res, Number(size))
  else respond(res, body)
})
server.listen({ port: Number(port), host: '127.0.0.1', backlog: 1024 })

function respond(res: ServerResponse, text: string): void {
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) })
  res.end(text)
}

function respondWithSize(req: IncomingMessage, res: ServerResponse): void {
  let bytes = 0
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  req.on('end', () => respond(res, String(bytes)))
}

function sendBytes(res: ServerResponse, size: number): void {
  let left = size
  res.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': size })
  const more = (): void => {
    while (left > 0) {
      const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE
      left -= piece.length
      if (!res.write(piece)) break
    }
    if (left > 0) res.once('drain', more)
    else res.end()
  }
  more()
}
