import type { Connections } from './connections.ts'

export interface HealthCheck {
  close(): void
}

/** Asks the device for `path` every `interval` ms. Any answer below 500 says that it lives. */
export function startHealthCheck(
  { path, interval }: { readonly path: string; readonly interval: number },
  connections: Connections,
  onResult: (up: boolean) => void,
): HealthCheck {
  let asking = false

  async function ask(): Promise<boolean> {
    const connection = connections.borrow()
    try {
      const response = await connection.dispatcher.request({ path, method: 'GET' })
      await response.body.dump()
      return response.statusCode < 500
    } catch {
      return false
    } finally {
      connection.release()
    }
  }

  function tick(): void {
    if (asking) return
    asking = true
    ask()
      .then(onResult)
      .finally(() => {
        asking = false
      })
  }

  tick()
  const timer = setInterval(tick, interval).unref()
  return { close: () => clearInterval(timer) }
}
