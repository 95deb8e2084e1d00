import { socketOfHook } from '../../config/password-fields.ts'
import { createHookSocket } from '../../password/hook-socket.ts'
import { systemClock } from '../../system/clock.ts'
import { check } from './part.ts'

/** The program that checks passwords. It is asked for its fingerprint, as at the start. */
export const HOOK = check({
  subjects({ config }) {
    const socket = socketOfHook(config)
    return socket === undefined ? [] : [socket]
  },
  about: () => ({
    name: 'password hook',
    key: 'password.socket',
    meaning: 'nobody can log in: clients get 500 in place of a token',
    remedy: 'start the program that listens there; its own log says why it does not answer',
  }),
  async look(socket) {
    const hook = createHookSocket(socket, systemClock)
    await hook.ready()
    return hook.ask({ fingerprint: true })
  },
  rows: {
    'no answer': (answer) => 'failed' in answer && { failed: answer.failed },
    'no fingerprint': (answer) =>
      (!('fingerprint' in answer) || answer.fingerprint === undefined) && {
        warning: 'it answers, but gives no fingerprint',
        meaning: 'tokens stay valid when the password changes: promise C8 does not hold',
        remedy:
          'let it answer {"fingerprint": true} with right FINGERPRINT, or set shorter tokens.* lifetimes',
      },
    answers: () => 'it answers, and a changed password ends all tokens within a minute',
  },
})
