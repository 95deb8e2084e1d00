import { type Model, model, response } from './firmware.ts'

/**
 * The server finds `Content-Length` only in this case. With `content-length`, which HTTP/2 clients send, it sees no body.
 * https://github.com/nkolban/esp32-snippets/issues/276
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const type = head.field('Content-Type')
    const body = await line.body(Number(head.field('Content-Length') ?? 0))
    if (head.method === 'POST' && type === undefined) line.end(response('', '', '415 Unsupported Media Type'))
    else line.send(response(head.method === 'POST' ? body.toString() : 'ok'))
  }
})
