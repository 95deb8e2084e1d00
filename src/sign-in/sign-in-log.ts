import type { Logger } from '../record/log.ts'
import type { SignInEvents } from './sign-in.ts'

/** What the operator reads of the sidecar's account at the device; never a password, cookie or nonce. */
export function signInLog(log: Logger): SignInEvents {
  return {
    signedIn: () => log.info('signed in to the device'),
    refused: (pause) =>
      log.error(
        { pauseMs: pause },
        'the device refuses the password that signs in; not tried again for a while',
      ),
    unusable: (reason) => log.error({ reason }, 'upstream.auth: cannot sign in to the device'),
  }
}
