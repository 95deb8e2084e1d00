import { type Model, model, response } from './firmware.ts'

/**
 * A console accepts a WebSocket, and here any POST, only if `Origin` is `http://` and its own `Host`.
 * https://github.com/cockpit-project/cockpit/issues/5073
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    await line.body(Number(head.field('Content-Length', 'i') ?? 0))
    const own = head.field('Origin', 'i') === `http://${head.field('Host', 'i')}`
    line.send(own || head.method === 'GET' ? response('ok') : response('', '', '403 Forbidden'))
  }
})
