import { type Model, model, response } from './firmware.ts'

/**
 * A daemon answers 409 with a session id, which the request has to bring when it is sent again.
 * https://github.com/transmission/transmission/issues/525
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    await line.body(Number(head.field('Content-Length', 'i') ?? 0))
    const known = head.field('X-Transmission-Session-Id', 'i') === 'A1b2C3'
    line.send(known ? response('ok') : response('', 'X-Transmission-Session-Id: A1b2C3\r\n', '409 Conflict'))
  }
})
