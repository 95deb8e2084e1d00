import { checkedByDevice } from '../../config/password-fields.ts'
import { sendOwnRequest } from '../../device/own-request.ts'
import { withCredentials } from '../../forward/request-fields.ts'
import { CURL, sampleFields } from '../../forward/sample-heads.ts'
import { tokenPlace } from '../../sign-in/session-token.ts'
import { isBug } from '../../system/setup-error.ts'
import { type OpenService, openService } from './open-service.ts'
import { check } from './part.ts'
import { allServices, failureHint, lookBound, pageOf, type Service } from './services.ts'

/** How the sidecar signs in at the device. */
export const SIGNING_IN = check({
  subjects: (asked) => {
    const { config } = asked
    const byGrant = checkedByDevice(config) ? config.upstream : undefined
    return allServices(asked).map((each) => ({ ...each, isByGrant: each.service === byGrant }))
  },
  about: ({ key, of }) => ({
    name: `signing in${of}`,
    key: `${key}.auth`,
    meaning: 'the device refuses the requests that Postern forwards',
    remedy: `correct ${key}.auth: the kind, the user and the password file`,
  }),
  untried({ service, isByGrant }) {
    if (isByGrant) return 'with the password of the last password grant, once there is one'
    return service.auth === 'off' ? 'off' : undefined
  },
  bound: lookBound,
  look: tryLogin,
  rows: {
    'no response': ({ failure, key }) =>
      failure !== undefined && {
        failed: `the device did not respond (${failure})`,
        remedy: failureHint(failure, key),
      },
    refused: ({ problem }) => problem !== undefined && { failed: problem },
    'another session': ({ isChanging, accepted, page, auth, key }) => {
      if (!isChanging || auth === 'off') return undefined
      const isNamed = auth.kind === 'session' && auth.session.token !== undefined
      return {
        warning: `${accepted}; its response to GET ${page} sets another session`,
        meaning: 'Postern signs in again after such responses, and the device may refuse requests meanwhile',
        remedy: isNamed
          ? 'have the device keep its session, if it can'
          : `name the cookie of the session in ${key}.auth.session.token.cookie, if another one changes`,
      }
    },
    'no logout': ({ unended, accepted, key }) =>
      unended !== undefined && {
        warning: `${accepted}; ${unended}: the session stays until the device ends it`,
        meaning: 'a device that allows few sessions soon refuses to open another',
        remedy: `correct ${key}.auth.session.logout`,
      },
    accepted: ({ accepted }) => accepted,
  },
})

/** Signs in, asks for a page, and signs out. `failure`: why the device did not respond to the login. */
async function tryLogin(subject: Service, signal: AbortSignal) {
  const { service, key } = subject
  const { auth } = service
  const settings = auth !== 'off' && auth.kind === 'session' ? auth : undefined
  const page = settings?.checkPath ?? pageOf(service)
  const { told, ...asked } = await askBehindLogin(subject, signal, page)
  const { login, token } = settings?.session ?? {}
  const accepted =
    login !== undefined && token !== undefined
      ? `${login.path} gave a token (${tokenPlace(token)})`
      : 'the device accepts the credentials'
  return { ...asked, ...told, accepted, page, auth, key }
}

/** When it resolves, the session has ended, so `told` is complete. */
async function askBehindLogin(subject: Service, signal: AbortSignal, page: string) {
  await using opened = await openService(subject, signal)
  const { signIn, told } = opened
  const failure = await signIn?.ready()
  return { failure, isChanging: await changesSession(opened, page), told }
}

/** Whether the device sets another session in its response to a signed-in GET. False if there is no response. */
async function changesSession(
  { connections, settings, signIn }: OpenService,
  page: string,
): Promise<boolean> {
  const line = { method: 'GET', target: page }
  const sent = signIn?.credentialsFor(line)
  if (signIn === undefined || sent === undefined) return false
  try {
    const fields = withCredentials(sampleFields(CURL, settings), sent.fields)
    const response = await sendOwnRequest(connections, { ...line, fields }, true)
    if (!signIn.isChallenge(line, response)) signIn.accepted(line, response, sent)
    return sent.session.changed === true
  } catch (error) {
    if (isBug(error)) throw error
    return false
  }
}
