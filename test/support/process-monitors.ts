import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { closeLater } from './cleanup.ts'

/*
 * Importing this file ends each monitor of this process with the test that started it. A sidecar monitors the event loop and the
 * garbage collector, and its `stop` ends neither. The monitors of a thousand sidecars, which one worker runs, take 250 µs in each
 * turn of the event loop, more in each collection, and keep 1 GB of memory.
 */
const delay = Object.getPrototypeOf(monitorEventLoopDelay()) as { enable(): boolean; disable(): boolean }
const { enable } = delay
delay.enable = function () {
  closeLater(() => {
    this.disable()
  })
  return enable.call(this)
}
const { observe } = PerformanceObserver.prototype
PerformanceObserver.prototype.observe = function (options) {
  closeLater(() => this.disconnect())
  observe.call(this, options)
}
