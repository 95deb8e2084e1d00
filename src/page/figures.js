/** How long an explanation stays after the pointer left, so that the pointer can move onto it (ms). */
const LINGER = 300

/**
 * Explains a figure, whose term is a button described by the explanation, on touch, hover and focus. The explanation stays while the
 * pointer is on it (WCAG 2.2, 1.4.13). Escape, scrolling or a touch elsewhere close it: it is a popover.
 */
export function explainFigures() {
  /** @type {HTMLElement | null} */
  let shown = null
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let closing
  const close = () => shown?.hidePopover()

  /** @param {Event} event */
  function follow({ target }) {
    if (!(target instanceof Element)) return
    const term = target.closest('button')
    const id = term?.getAttribute('aria-describedby')
    clearTimeout(closing)
    if (term && id) {
      shown = document.getElementById(id)
      shown?.showPopover({ source: term })
    } else if (!shown?.contains(target)) closing = setTimeout(close, LINGER)
  }

  for (const event of ['pointerover', 'focusin', 'click']) document.addEventListener(event, follow)
  document.addEventListener('scroll', close, { capture: true, passive: true })
}
