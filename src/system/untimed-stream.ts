import { Duplex } from 'node:stream'

/** A stream for a package that expects a socket and turns off its idle timer. It has none: an `IdleList` watches the connection. */
export class UntimedStream extends Duplex {
  setTimeout(): this {
    return this
  }
}
