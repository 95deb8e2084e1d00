import { DeviceFault } from './failure.ts'

/** An answer that the strict parser refuses, or that cannot be handed on as it is; read tolerantly, it may be. */
export class MalformedAnswer extends DeviceFault {
  constructor() {
    super('http_protocol_error')
  }
}
