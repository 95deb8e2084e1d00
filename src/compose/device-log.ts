import type { ConnectionsOptions } from '../device/connections.ts'
import type { Room } from '../device/turns.ts'
import type { Logger } from '../record/log.ts'

const STRAY =
  'the device sends bytes after its response; late ones may reach the next client: see upstream.reuse'

const TOLERANT =
  'the device sends malformed HTTP: from now on parsed tolerantly, with one connection per request'

const DELAYED =
  'a kept connection costs 40 ms a request (delayed acknowledgements): from now on one connection per request; set upstream.reuse: never'

const LEARNED = 'learned how many requests the device can take at once'

const UNKEPT = 'what the device can take at once is not kept: it is learned anew after a restart'

/** Logs that the file of the ceilings cannot be used. */
export function unkeptLog(log: Logger): (error: unknown) => void {
  return (err) => log.warn({ err }, UNKEPT)
}

/** Logs the learned bound when it has doubled or halved since the last line. */
export function limitLog(log: Logger): (reason: string, limit: number) => void {
  let told = 2
  return (reason, limit) => {
    if (limit < 2 * told && limit > told / 2) return
    told = limit
    log.info({ limit, reason }, LEARNED)
  }
}

/** Logs what is learned about a service of the device from its connections, each once. */
export function connectionsLog(log: Logger, room: Room): ConnectionsOptions {
  let strayed = false
  return {
    room,
    onStray() {
      if (!strayed) log.warn(STRAY)
      strayed = true
    },
    onTolerant: () => log.warn(TOLERANT),
    onDelayed: () => log.warn(DELAYED),
  }
}
