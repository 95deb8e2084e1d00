import { type Model, model, response } from './firmware.ts'

/**
 * A hub answers 400 to a request with `X-Forwarded-For` that does not come from a proxy of its list.
 * https://github.com/home-assistant/core/pull/38696
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const forwarded = head.field('X-Forwarded-For', 'i') !== undefined
    line.send(forwarded ? response('400: Bad Request', '', '400 Bad Request') : response('ok'))
  }
})
