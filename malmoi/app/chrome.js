// Streamlit speaks English where it gives no option for it. Its own words are exchanged as they
// appear; what people wrote is never touched: only whole nodes within Streamlit's own parts.
const KOREAN = {
  "Connection error": "서버와 연결이 끊겼습니다",
  Connecting: "연결하는 중",
  CONNECTING: "연결하는 중",
  "Please wait...": "잠시만 기다려 주세요…",
  "Page not found": "그런 페이지가 없습니다",
  "Sort ascending": "오름차순",
  "Sort descending": "내림차순",
  Format: "모양",
  Autosize: "너비 맞춤",
  "Pin column": "열 고정",
  "Unpin column": "열 고정 풀기",
  "Hide column": "열 숨기기",
  Statistics: "통계",
  Automatic: "자동",
  "No results": "찾은 것이 없습니다",
  "No options to select": "고를 것이 없습니다",
  "Select all": "모두 고르기",
  Close: "닫기",
  Stop: "멈춤",
  "Date range": "기간",
  "Select...": "고르기…",
  "Quick select a date range": "기간 고르기",
  "Past Week": "지난 1주",
  "Past Month": "지난 1개월",
  "Past 3 Months": "지난 3개월",
  "Past 6 Months": "지난 6개월",
  "Past Year": "지난 1년",
  "Past 2 Years": "지난 2년",
  "Stopping...": "멈추는 중…",
  "Bad message format": "서버의 응답을 읽을 수 없습니다. 페이지를 새로 고쳐 주세요.",
  "Connection timed out.": "서버가 제때 대답하지 않습니다. 대답하면 저절로 이어집니다.",
  "streamlit run yourscript.py": "streamlit run app/main.py",
};
// What people wrote within those parts: what can be chosen, what the app draws in a dialog, help.
const OF_PEOPLE = [
  "[role=option][data-key]:not([data-key^=past])",
  "[role=dialog] [data-testid=stVerticalBlock]",
  "[role=tooltip] [data-testid=stMarkdownContainer]",
].join(",");
// Names that a screen reader says, and the link that the first Tab shows. They stand from the start,
// and where an attribute is empty here it is the text.
const NAMES = [
  ["[data-testid=stSkipToContent]", "", "Skip to main content", "본문으로 건너뛰기"],
  ["[data-testid=stSidebar]", "aria-label", "Sidebar", "옆 메뉴"],
  ["[data-testid=stSidebar] button", "aria-label", "Collapse sidebar", "옆 메뉴 접기"],
  ["button", "aria-label", "Expand sidebar", "옆 메뉴 펴기"],
  ["[data-testid=stSidebarNav]", "aria-label", "App pages", "화면"],
  ["[data-testid=stProgress] [role=progressbar]", "aria-label", "progress", "진행"],
  ["[data-testid=stSelectbox] button", "aria-label", "Open", "열기"],
  ["[data-testid=stSelectbox] input", "placeholder", "Choose an option", "골라 주세요"],
  ["[data-testid=stFileUploaderDropzoneInput]", "aria-label", "file upload", "파일 올리기"],
];
const PARTS = [
  "[role=dialog]",
  "[role=menu]",
  "[role=listbox]",
  "[role=tooltip]",
  "[data-testid=stConnectionStatus]",
  "[data-testid=stStatusWidget]",
  "[data-testid=stDataFrameColumnMenu]",
  "[data-testid=stDateInputCalendar]",
].join(",");
const LONGEST_WAIT = 5_000; // ms
const LEAST_BETWEEN_LOADS = 10_000; // ms
const LOADED_AGAIN = "malmoi_loaded_again";
const GONE =
  /Streamlit server is not responding|Is Streamlit still running|accidentally stopped Streamlit/;
const REFUSED = /^(?:Cannot connect to Streamlit|Connection failed with status)\D*(\d+)/;

function isStreamlits(element) {
  return Boolean(element?.closest(PARTS)) && !element.closest(OF_PEOPLE);
}

// Says names in a language; they are exchanged back where the visitor chooses the other one.
function name(language) {
  for (const [selector, attribute, english, korean] of NAMES) {
    const [from, to] = language === "ko" ? [english, korean] : [korean, english];
    for (const element of document.querySelectorAll(selector)) {
      if (!attribute && element.textContent === from) element.textContent = to;
      else if (attribute && element.getAttribute(attribute) === from) element.setAttribute(attribute, to);
    }
  }
}

function exchange(node) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (!isStreamlits(node.parentElement)) return;
    const words = node.data.trim();
    const refused = REFUSED.exec(words);
    if (KOREAN[words]) node.data = KOREAN[words];
    // A heading for screen readers, with the month behind it.
    else if (words.startsWith("Choose date range")) node.data = words.replace("Choose date range", "기간 고르기");
    else if (GONE.test(words))
      node.data = "말모이 서버가 꺼졌거나 다시 시작하는 중입니다. 서버가 켜지면 저절로 이어집니다.";
    else if (refused)
      node.data = `서버가 연결을 받지 않습니다 (HTTP ${refused[1]}). 관리자에게 알려 주세요.`;
    return;
  }
  const label = node.getAttribute?.("aria-label");
  if (KOREAN[label] && isStreamlits(node)) node.setAttribute("aria-label", KOREAN[label]);
  for (const child of node.childNodes) exchange(child);
}

// Enter on a label that was just clicked would take it back, while the button below promises that
// Enter decides. The space bar still presses the label.
function decide(event) {
  const several = event.target.closest?.(".st-key-review_several");
  if (event.key !== "Enter" || !several || !event.target.closest("[data-variant=pills]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (!event.repeat) several.querySelector("[data-testid=stBaseButton-primary]")?.click();
}

// The labelling card; null on a page without one.
function card() {
  const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
  return hosts.map((host) => host.shadowRoot?.querySelector(".card")).find(Boolean) ?? null;
}

// From the field of the name, Enter goes on to the text; so does a digit, which is a label's key and no
// part of a name where texts are labelled.
function leaveName(event) {
  const field = event.target;
  if (!field.closest?.(".st-key-name") || !card() || event.isComposing) return;
  if (event.type === "beforeinput" && /^\d$/.test(event.data ?? "")) {
    event.preventDefault();
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  } else if (event.key === "Enter") goToText(field, Date.now());
}

// Not before the card is that of this person: the next label is to be theirs.
function goToText(field, since) {
  const name = field.value.trim();
  const isTheirs = !name || card()?.dataset.scope?.endsWith(`/${name}`);
  if (!isTheirs && Date.now() - since < LONGEST_WAIT) window.setTimeout(goToText, 50, field, since);
  else {
    field.blur();
    card()?.querySelector(".text").focus();
  }
}

// Streamlit 1.67 may rerun a fragment with run_every after the visitor went on to another page. The
// browser takes that for a return to the old page, drops the new one, cannot place the next message and
// ends with an empty page: "Bad delta path index". Labels are saved by then; a reload draws the page.
function loadAgain({ message }) {
  if (!message?.includes("Bad delta path")) return;
  const since = Date.now() - Number(window.sessionStorage.getItem(LOADED_AGAIN));
  window.setTimeout(() => {
    window.sessionStorage.setItem(LOADED_AGAIN, Date.now());
    window.location.reload();
  }, Math.max(0, LEAST_BETWEEN_LOADS - since));
}

export default function ({ data, setTriggerValue }) {
  window.addEventListener("error", loadAgain);
  window.addEventListener("keydown", decide, true);
  for (const kind of ["keydown", "beforeinput"]) window.addEventListener(kind, leaveName, true);
  document.documentElement.lang = data.language;
  // Streamlit cleans up when a component goes, not when it is drawn again: in another language the
  // observer of the one before would go on.
  window.malmoi?.stop?.();
  // For components within a fragment, whose own messages reach nobody before the page is drawn.
  window.malmoi = { drawAnew: () => setTriggerValue("anew", Date.now()) };
  name(data.language);
  if (data.language !== "ko") return;
  // What is drawn together is looked through once.
  let waits = 0;
  const observer = new MutationObserver((changes) => {
    waits ||= window.setTimeout(() => {
      waits = 0;
      name("ko");
    }, 100);
    for (const change of changes) {
      if (change.type === "characterData") exchange(change.target);
      for (const node of change.addedNodes) exchange(node);
    }
  });
  observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  window.malmoi.stop = () => {
    observer.disconnect();
    window.clearTimeout(waits);
  };
  return window.malmoi.stop;
}
