import { Duplex } from 'node:stream'

/** A stream in place of a socket for a package that switches the idle timer of sockets off. It has none: an `IdleList` watches the connection. */
export class UntimedStream extends Duplex {
  setTimeout(): this {
    return this
  }
}
