import { DeviceFault } from './failure.ts'

/** The device broke HTTP: the strict parser refuses the answer, and the tolerant one may be able to read it. */
export class MalformedAnswer extends DeviceFault {
  constructor() {
    super('http_protocol_error')
  }
}
