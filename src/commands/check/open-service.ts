import type { ServiceConfig } from '../../config/upstream-fields.ts'
import { createConnections, type Malformed } from '../../device/connections.ts'
import { readRequestFields, upstreamDeadlines, upstreamTarget } from '../../forward/service-settings.ts'
import { openSignIn } from '../../sign-in/open-sign-in.ts'
import { systemClock } from '../../system/clock.ts'

/**
 * Opens a service with its login, as `serve` does. `told` collects problems of the login, its end and responses. Its disposal ends the
 * session.
 */
export async function openService(service: ServiceConfig, key: string) {
  const told: { problem?: string; unended?: string; malformed?: Malformed } = {}
  const target = await upstreamTarget(service, key)
  const settings = await readRequestFields(service, key)
  const connections = createConnections(target, upstreamDeadlines(service), systemClock, {
    onQuirk(_quirk, malformed) {
      if (malformed !== undefined) told.malformed = malformed
    },
  })
  const signIn = await openSignIn(service.auth, {
    key: `${key}.auth`,
    connections,
    origin: target.origin,
    request: () => settings,
    clock: systemClock,
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
