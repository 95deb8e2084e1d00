import type { Fields } from '../../http/fields.ts'
import { isBug } from '../../http/setup-error.ts'
import type { Connections } from '../connections.ts'
import { DeviceFault, failureOf } from '../failure.ts'
import { type Answer, type OwnRequest, sendOwn } from '../own-request.ts'
import type { Ask } from './scheme.ts'

/**
 * Sends the sidecar's own requests to the device. `fields`: what every request to it carries. A kept connection that
 * turns out to be closed is tried once more; the failures are `DeviceFault`s, which say nothing of what was sent.
 */
export function createAsk(connections: Connections, fields: () => Fields): Ask {
  async function attempt(
    request: OwnRequest,
    mayRepeat: boolean,
  ): Promise<Answer | { readonly stale: boolean; error: unknown }> {
    const connection = connections.borrow(mayRepeat)
    try {
      const answer = await sendOwn(connection, { ...request, fields: combined(fields(), request.fields) })
      connection.release(true)
      return answer
    } catch (error) {
      const stale = connection.reused && failureOf(error) === 'connection_terminated'
      connection.release(false)
      return { stale, error }
    }
  }

  return async (request) => {
    let result = await attempt(request, true)
    if ('error' in result && result.stale) result = await attempt(request, false)
    if ('error' in result) throw isBug(result.error) ? result.error : new DeviceFault(failureOf(result.error))
    return result
  }
}

/** What a request says itself stands for what all of them say. */
function combined(common: Fields, own: Fields): Fields {
  const names = new Set(own.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
  return [...common.filter((_, i) => !names.has(common[i - (i % 2)]?.toLowerCase() ?? '')), ...own]
}
