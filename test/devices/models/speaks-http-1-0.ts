import { type Model, model, response } from './firmware.ts'

/**
 * A server that knows HTTP/1.0 alone: it refuses any other version, and ends each connection.
 * https://github.com/micropython/micropython-lib/pull/594
 */
export const device: Model = model(import.meta, () => async (line) => {
  const head = await line.head()
  if (head === undefined) return
  if (head.version !== '1.0') return line.end('HTTP/1.0 505 HTTP Version not supported\r\n\r\n')
  const body = await line.body(Number(head.field('Content-Length', 'i') ?? 0))
  line.end(response(head.method === 'POST' ? body.toString() : 'ok').replace('HTTP/1.1', 'HTTP/1.0'))
})
