import { createHook } from 'node:async_hooks'

/** The tick object. Nothing reads it; it only has to stay reachable. */
const kept: object[] = []

/**
 * Keeps `process.nextTick` fast. Node 26 makes an object with computed property names for each tick. V8 shares one hidden class among these
 * objects as long as one of them is alive. A full collection while no tick is queued frees that class; from then on every tick costs three
 * to seven times as much, until the process ends. An HTTP/2 request takes six ticks. So one tick object stays alive. The test of this
 * function fails when a release of Node no longer needs it.
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
