import type { ConnectionsOptions } from '../device/connections.ts'
import type { Logger } from '../record/log.ts'

const STRAY =
  'the device sends bytes after its response; late ones may reach the next client: see upstream.reuse'

const TOLERANT =
  'the device sends malformed HTTP: from now on parsed tolerantly, with one connection per request'

const DELAYED =
  'a kept connection costs 40 ms a request (delayed acknowledgements): from now on one connection per request; set upstream.reuse: never'

/** Logs what is learned about a service of the device from its connections, each once. */
export function connectionsLog(log: Logger): ConnectionsOptions {
  let strayed = false
  return {
    onStray() {
      if (!strayed) log.warn(STRAY)
      strayed = true
    },
    onTolerant: () => log.warn(TOLERANT),
    onDelayed: () => log.warn(DELAYED),
  }
}
