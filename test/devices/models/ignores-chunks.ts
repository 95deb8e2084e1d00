import { type Model, model, response } from './firmware.ts'

/**
 * The server knows no chunks: a body without `Content-Length` is what came with the head, and the answer is 200.
 * https://github.com/eidheim/Simple-Web-Server/issues/173
 */
export const device: Model = model(import.meta, () => async (line) => {
  const head = await line.head()
  if (head === undefined) return
  const length = head.field('Content-Length', 'i')
  const body = length === undefined ? line.rest() : await line.body(Number(length))
  line.end(response(head.method === 'POST' ? body.toString() : 'ok', 'Connection: close\r\n'))
})
