import { type Model, model, response } from './firmware.ts'

/**
 * The server waits for the end of a body in chunks, which it never recognises, and answers nothing.
 * https://github.com/cesanta/mongoose/issues/2854
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    if (head.field('Transfer-Encoding', 'i') !== undefined) return line.body(Number.POSITIVE_INFINITY)
    const body = await line.body(Number(head.field('Content-Length', 'i') ?? 0))
    line.send(response(head.method === 'POST' ? body.toString() : 'ok'))
  }
})
