import { type Model, model, response } from './firmware.ts'

/**
 * A server answers 417 to `Expect: 100-continue`, which curl sends with an upload.
 * https://github.com/zhangyachen/zhangyachen.github.io/issues/90
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    if (head.field('Expect', 'i') !== undefined) return line.end(response('', '', '417 Expectation Failed'))
    const body = await line.body(Number(head.field('Content-Length', 'i') ?? 0))
    line.send(response(head.method === 'POST' ? body.toString() : 'ok'))
  }
})
