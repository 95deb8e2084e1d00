import { createHook } from 'node:async_hooks'

/** Never read: what counts is that it is reachable. */
const kept: object[] = []

/**
 * Keeps `process.nextTick` fast. Node 26 makes an object for each tick, with computed names, and V8 shares one hidden class among
 * them for as long as one such object is alive. A full collection while no tick is queued frees that class, and from then on
 * every tick costs three to seven times as much, until the process ends. A request takes six ticks over HTTP/2. So one tick object stays
 * alive. The test of this function tells when a release of Node needs it no more.
 */
export function keepTicksFast(): void {
  const hook = createHook({
    init(_id, _type, _trigger, resource) {
      kept.push(resource)
    },
  })
  hook.enable()
  process.nextTick(() => {})
  hook.disable()
}
