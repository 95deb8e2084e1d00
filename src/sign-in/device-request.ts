import type { Connections } from '../device/connections.ts'
import { DeviceFault, failureOf } from '../device/failure.ts'
import { askDevice } from '../device/own-request.ts'
import { type Fields, keepFields, namesIn } from '../http/fields.ts'
import { isBug } from '../system/setup-error.ts'
import type { Ask } from './scheme.ts'

/**
 * Sends the sidecar's own requests to the device. `fields`: what every request to it carries. A kept connection that
 * turns out to be closed is tried once more; the failures are `DeviceFault`s, which say nothing of what was sent.
 */
export function createAsk(connections: Connections, fields: () => Fields): Ask {
  return async (request) => {
    try {
      return await askDevice(connections, { ...request, fields: combined(fields(), request.fields) }, true)
    } catch (error) {
      throw isBug(error) ? error : new DeviceFault(failureOf(error))
    }
  }
}

/** What a request says itself stands for what all of them say. */
function combined(common: Fields, own: Fields): Fields {
  const names = namesIn(own)
  return [...keepFields(common, (name) => !names.has(name)), ...own]
}
