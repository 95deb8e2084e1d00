import { type Model, model, response } from './firmware.ts'

/**
 * A router's server writes head and body apart, with the algorithm of Nagle: on a kept connection the body waits for the
 * acknowledgement of the head, which the other side delays by 40 ms.
 * https://github.com/openwrt/uhttpd/pull/34
 */
export const device: Model = model(import.meta, () => async (line) => {
  line.socket.setNoDelay(false)
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const [fields = '', body = ''] = response('ok').split(/(?<=\r\n\r\n)/)
    line.send(fields)
    setImmediate(() => line.send(body))
  }
})
