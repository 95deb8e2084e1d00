import { createConnections, type Malformed } from '../../device/connections.ts'
import { readRequestFields, upstreamDeadlines, upstreamTarget } from '../../forward/service-settings.ts'
import { openSignIn } from '../../sign-in/open-sign-in.ts'
import type { Service } from './services.ts'

/**
 * Opens a service with its login, as `serve` does. `told` collects problems of the login, its end and responses. Its disposal ends the
 * session.
 *
 * @param signal ends all requests to the device
 */
export async function openService({ service, key, clock }: Service, signal: AbortSignal) {
  const told: { problem?: string; unended?: string; malformed?: Malformed } = {}
  const target = await upstreamTarget(service, key)
  const settings = await readRequestFields(service, key)
  const connections = createConnections(target, upstreamDeadlines(service), clock, {
    signal,
    onQuirk(_quirk, malformed) {
      if (malformed !== undefined) told.malformed = malformed
    },
  })
  const signIn = await openSignIn(service.auth, {
    key: `${key}.auth`,
    connections,
    origin: target.origin,
    request: () => settings,
    clock,
    events: {
      signedIn() {},
      refused() {
        told.problem = 'the device refuses these credentials'
      },
      unusable(reason) {
        told.problem = reason
      },
      changing() {},
      notSignedOut(reason) {
        told.unended = reason
      },
    },
  })
  const end = async (): Promise<void> => {
    await signIn?.signOut()
    await connections.close()
  }
  return { connections, settings, signIn, told, [Symbol.asyncDispose]: end }
}

export type OpenService = Awaited<ReturnType<typeof openService>>
