import { type Model, model, response } from './firmware.ts'

/**
 * A daemon on a router answers 421 to any `Host` but its own address, against DNS rebinding.
 * https://github.com/openwrt/packages/issues/5778
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const own = head.field('Host', 'i') === `127.0.0.1:${line.socket.localPort}`
    line.send(own ? response('ok') : response('', '', '421 Misdirected Request'))
  }
})
