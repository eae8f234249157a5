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
  "Stopping...": "멈추는 중…",
  "Bad message format": "서버의 말을 알아들을 수 없습니다",
  "Connection timed out.": "서버가 제때 대답하지 않습니다. 대답하면 저절로 이어집니다.",
  "streamlit run yourscript.py": "streamlit run app/main.py",
};
const PARTS = [
  "[role=dialog]",
  "[role=menu]",
  "[role=listbox]",
  "[role=tooltip]",
  "[data-testid=stConnectionStatus]",
  "[data-testid=stStatusWidget]",
  "[data-testid=stDataFrameColumnMenu]",
].join(",");
const GONE =
  /Streamlit server is not responding|Is Streamlit still running|accidentally stopped Streamlit/;
const REFUSED = /^(?:Cannot connect to Streamlit|Connection failed with status)\D*(\d+)/;

function exchange(node) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (!node.parentElement?.closest(PARTS)) return;
    const words = node.data.trim();
    const refused = REFUSED.exec(words);
    if (KOREAN[words]) node.data = KOREAN[words];
    else if (GONE.test(words))
      node.data = "말모이 서버가 꺼졌거나 다시 시작하는 중입니다. 서버가 켜지면 저절로 이어집니다.";
    else if (refused)
      node.data = `서버가 연결을 받지 않습니다 (HTTP ${refused[1]}). 관리자에게 알려 주세요.`;
    return;
  }
  const name = node.getAttribute?.("aria-label");
  if (KOREAN[name] && node.closest(PARTS)) node.setAttribute("aria-label", KOREAN[name]);
  for (const child of node.childNodes) exchange(child);
}

export default function ({ data, setTriggerValue }) {
  document.documentElement.lang = data.language;
  // For components within a fragment, whose own messages reach nobody before the page is drawn.
  window.malmoi = { drawAnew: () => setTriggerValue("anew", Date.now()) };
  if (data.language !== "ko") return;
  const observer = new MutationObserver((changes) => {
    for (const change of changes) {
      if (change.type === "characterData") exchange(change.target);
      for (const node of change.addedNodes) exchange(node);
    }
  });
  observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  return () => observer.disconnect();
}
