import { type Model, model, response } from './firmware.ts'

/**
 * A server sends a page with its 304, on a connection that stays open.
 * https://github.com/e2guardian/e2guardian/issues/136
 */
export const device: Model = model(import.meta, () => async (line) => {
  for (let head = await line.head(); head !== undefined; head = await line.head()) {
    const known = head.field('If-None-Match', 'i') !== undefined
    line.send(known ? response('<!DOCTYPE html>not modified', '', '304 Not Modified') : response('ok'))
  }
})
