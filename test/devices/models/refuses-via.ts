import { type Model, model, response } from './firmware.ts'

/**
 * Some servers behave differently when a request has `Via`. This one refuses it.
 * https://github.com/lightbody/browsermob-proxy/issues/213
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const proxied = head.field('Via', 'i') !== undefined
    line.send(proxied ? response('no proxies', '', '403 Forbidden') : response('ok'))
  }
})
